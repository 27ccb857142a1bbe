import type { VersionRange } from '../placement/versions.ts';
import { nearNames } from '../text/strings.ts';

/** Codes that clients match on; upstream's `placement/errors.py`, shown from microversion 1.23. */
export const errorCodes = {
  undefined: 'placement.undefined_code',
  inventoryInUse: 'placement.inventory.inuse',
  concurrentUpdate: 'placement.concurrent_update',
  duplicateName: 'placement.duplicate_name',
  providerInUse: 'placement.resource_provider.inuse',
  cannotDeleteParent: 'placement.resource_provider.cannot_delete_parent',
  providerNotFound: 'placement.resource_provider.not_found',
  duplicateQueryKey: 'placement.query.duplicate_key',
  badQueryValue: 'placement.query.bad_value',
  missingQueryValue: 'placement.query.missing_value',
  /** Ours, from microversion 2.1. */
  preconditionFailed: 'placement.precondition_failed',
  /** Why a claim does not fit: ours, from microversion 2.2. */
  capacityExceeded: 'placement.capacity_exceeded',
  inventoryAbsent: 'placement.inventory_absent',
  inventoryConstraints: 'placement.inventory_constraints',
  /** Of claims by query: ours, from microversion 2.4. */
  noCandidates: 'placement.no_candidates',
  queryTooWide: 'placement.query_too_wide',
  /** A token of changes that cannot be followed any more: ours, from microversion 2.5. */
  changesExpired: 'placement.changes_expired',
  /** A claim that exceeds a limit of its project: ours, from microversion 2.7. */
  limitExceeded: 'placement.limit_exceeded',
} as const;

/** The error text for a write that lost a race. Clients match on these words of upstream. */
export const concurrentlyUpdated =
  'Another thread concurrently updated the resource provider data. Please retry your update';

/** The error for a request that has lost a race, where upstream has no other words. */
export const concurrentUpdate = (): ApiError => conflict(concurrentlyUpdated, errorCodes.concurrentUpdate);

/** The error text for an unknown resource class, in upstream's words. */
export const noSuchClass = (name: string): string => `No such resource class ${name}.`;

/** The same in version 2, with the name that may be meant. Not every user may list the classes. */
export const unknownClass = (name: string, { byName }: ByName): string => noSuchClass(name) + meantBy(name, byName);

/** The error text for unknown traits, in upstream's words. */
export const noSuchTraits = (names: readonly string[]): string => `No such trait(s): ${names.join(', ')}.`;

/** The same in version 2, with the name that the first one may mean. */
export const unknownTraits = (names: readonly string[], { byName }: ByName): string =>
  noSuchTraits(names) + meantBy(names[0] ?? '', byName);

type ByName = { readonly byName: ReadonlyMap<string, unknown> };

/** Of very many names none is looked for, since that would take long. */
const mostCompared = 2000;

function meantBy(name: string, byName: ByName['byName']): string {
  const meant = byName.size > mostCompared ? undefined : nearNames(name, byName.keys());
  return meant === undefined ? '' : ` Did you mean ${meant}?`;
}

/** The error text for an unknown resource provider, in upstream's words. */
export const noSuchProvider = (uuid: string): string => `No resource provider with uuid ${uuid} found`;

/** The error text for inventories that cannot be removed, since they have allocations; in upstream's words. */
export const inventoryInUse = (classNames: readonly string[], providerUuid: string): string =>
  `Inventory for '${classNames.join(', ')}' on resource provider '${providerUuid}' in use.`;

/** The value of the field `code` of an error. */
export type ErrorCode = (typeof errorCodes)[keyof typeof errorCodes];

type Options = {
  readonly code?: ErrorCode | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /**
   * Whether the answer has the header `Vary`. Upstream leaves it out of errors that leave its handlers as exceptions,
   * and so does this service.
   */
  readonly vary?: boolean;
  /** The text from microversion 2.2 on, if it differs from upstream's text. */
  readonly sentence?: string | undefined;
  /** The versions that a 406 offers, if the version of the request is refused. */
  readonly versions?: VersionRange | undefined;
};

/** An error with a status and a text for the client. The server answers 500 to most other errors. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly vary: boolean;
  readonly sentence: string | undefined;
  readonly versions: VersionRange | undefined;

  constructor(status: number, detail: string, options: Options = {}) {
    super(detail);
    this.status = status;
    this.code = options.code ?? errorCodes.undefined;
    this.headers = options.headers ?? {};
    this.vary = options.vary ?? true;
    this.sentence = options.sentence;
    this.versions = options.versions;
  }
}

/** The same error with a hint behind its sentence. @param inMessage whether OpenStack's versions show the hint, too */
export function withHint(error: ApiError, hint: string, { inMessage = false } = {}): ApiError {
  const { status, message, sentence } = error;
  return new ApiError(status, inMessage ? `${message} ${hint}` : message, {
    ...error,
    sentence: sentence && `${sentence} ${hint}`,
  });
}

/** The same error with more headers. */
export const withErrorHeaders = (error: ApiError, more: ApiError['headers']): ApiError =>
  new ApiError(error.status, error.message, { ...error, headers: { ...error.headers, ...more } });

/** A 400: the request itself is wrong. */
export const badRequest = (detail: string, code?: ErrorCode): ApiError => new ApiError(400, detail, { code });
/** A 400 in upstream's words, which do not name the value; version 2 does. */
export const badValue = (detail: string, value: string): ApiError =>
  new ApiError(400, detail, { sentence: `${detail}. Got: ${value}` });
/** A 400 for an unknown class in the parameter `resource_class`. */
export const unknownClassParameter = (name: string, classes: ByName): ApiError =>
  badRequest(`Invalid query string parameters: resource_class: ${unknownClass(name, classes)}`);
/** A 409: the request is right, and the state of the resource does not allow it. */
export const conflict = (detail: string, code?: ErrorCode): ApiError => new ApiError(409, detail, { code });
/** A 503 with Retry-After: the same request may succeed in a while. */
export const tryLater = (detail: string, afterSeconds = 1): ApiError =>
  new ApiError(503, detail, { headers: { 'retry-after': String(afterSeconds) } });
/** A 404. */
export const notFound = (detail: string): ApiError => new ApiError(404, detail);
/** A 404 that upstream raises outside of its handlers: an unknown provider, class or path. */
export const notFoundWithoutVary = (detail: string): ApiError => new ApiError(404, detail, { vary: false });
