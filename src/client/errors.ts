/**
 * Every error of this client: an {@link ApiError}, {@link VersionError}, {@link ConnectionError} or {@link AuthError}; a plain
 * `PlacementError` where an answer is not one of a placement service.
 */
export class PlacementError extends Error {
  override readonly name: string = 'PlacementError';
}

/** The codes that the server sends from microversion 1.23 on. */
export type ErrorCode =
  | 'placement.undefined_code'
  | 'placement.inventory.inuse'
  | 'placement.concurrent_update'
  | 'placement.duplicate_name'
  | 'placement.resource_provider.inuse'
  | 'placement.resource_provider.cannot_delete_parent'
  | 'placement.resource_provider.not_found'
  | 'placement.query.duplicate_key'
  | 'placement.query.bad_value'
  | 'placement.query.missing_value'
  | 'placement.precondition_failed'
  | 'placement.capacity_exceeded'
  | 'placement.inventory_absent'
  | 'placement.inventory_constraints'
  | 'placement.no_candidates'
  | 'placement.query_too_wide'
  | 'placement.changes_expired'
  | 'placement.limit_exceeded';

/** The parts of an answer with an error status. */
export type Refusal = {
  readonly status: number;
  /** Undefined below microversion 1.23, and if a proxy in front of the server sent the answer. */
  readonly code: ErrorCode | undefined;
  readonly title: string;
  /** The text of the server. */
  readonly detail: string;
  /** The id of the request, to find it in the server's log. */
  readonly requestId: string | undefined;
};

/** The server, or a proxy in front of it, answered a request with an error. */
export class ApiError extends PlacementError {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly code: ErrorCode | undefined;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string | undefined;
  /** The request, `PUT /allocations/{uuid}`. */
  readonly request: string;
  /**
   * How often the request was sent. If it was sent more than once, a conflict may come from an earlier attempt: its
   * answer was lost, but the server may have executed it.
   */
  readonly attempts: number;

  constructor(request: string, refusal: Refusal, attempts: number) {
    const code = refusal.code === undefined || refusal.code === 'placement.undefined_code' ? '' : ` (${refusal.code})`;
    super(`${refusal.detail} [${request}: ${refusal.status} ${refusal.title}${code}]`);
    this.status = refusal.status;
    this.code = refusal.code;
    this.title = refusal.title;
    this.detail = refusal.detail;
    this.requestId = refusal.requestId;
    this.request = request;
    this.attempts = attempts;
  }
}

/** Microversions that a server speaks, such as `1.0` to `1.39`. */
export type VersionRange = { readonly min: string; readonly max: string };

/**
 * - `invalid`: the text is not a microversion, or not one that this client knows. No request was sent.
 * - `unsupported`: the server does not speak this version, or client and server have no version in common.
 * - `no microversions`: the server knows no microversions, but the program requires one.
 * - `too old`: the request needs a newer microversion than the one that is in use.
 */
export type VersionProblem = 'invalid' | 'unsupported' | 'no microversions' | 'too old';

/** Client and server have no version in common that is acceptable. */
export class VersionError extends PlacementError {
  override readonly name = 'VersionError';
  readonly problem: VersionProblem;
  /** The versions that the server speaks, if they are known. */
  readonly server: VersionRange | undefined;

  constructor(problem: VersionProblem, message: string, server?: VersionRange) {
    super(message);
    this.problem = problem;
    this.server = server;
  }
}

/** There was no answer: there was no connection, the connection was lost, or the deadline has passed. */
export class ConnectionError extends PlacementError {
  override readonly name = 'ConnectionError';
  /** true: the request certainly did not reach the server. false: the server may have executed it. */
  readonly unsent: boolean;

  constructor(message: string, options: { readonly unsent: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.unsent = options.unsent;
  }
}

/** Keystone issued no token, or its catalog has no placement service. */
export class AuthError extends PlacementError {
  override readonly name = 'AuthError';
  /** What Keystone answered, where the login failed: 401 if it refuses the credentials. */
  readonly status: number | undefined;

  constructor(message: string, status?: number) {
    super(message);
    this.status = status;
  }
}

/** For `catch`: a value instead of an expected error. Any other error is thrown again. */
export const instead =
  <Value>(value: Value, isExpected: (error: unknown) => boolean) =>
  (error: unknown): Value => {
    if (isExpected(error)) return value;
    throw error;
  };

/** An answer; undefined if the service is too old for it, or if this user may not read it. */
export const unlessUnknown = <Answer>(asked: Promise<Answer>): Promise<Answer | undefined> =>
  asked.catch(instead(undefined, (error) => error instanceof VersionError || isForbidden(error)));

/** Whether the server is too old for a request or a parameter. */
export const isTooOld = (error: unknown): error is VersionError =>
  error instanceof VersionError && error.problem === 'too old';

/** Whether this user may not send the request. */
export const isForbidden = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 403;

/** Whether the requested resource does not exist. */
export const isNotFound = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 404;

/**
 * Whether a request conflicts with the current state: a name is taken, there is no room, or a generation has changed.
 */
export const isConflict = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 409;

/** Whether a claim by query was refused because the consumer fits nowhere. */
export const isNoCandidates = (error: unknown): error is ApiError =>
  isConflict(error) && error.code === 'placement.no_candidates';

/** Whether a write was refused because the resource does not match `ifMatch`: it was changed or deleted. */
export const isPreconditionFailed = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status === 412;

/**
 * Whether a write was refused because the data that it was based on has changed. The program should read again, decide
 * again and write again. Below microversion 1.23 errors have no code, so this is recognized by the server's text.
 */
export function isConcurrentUpdate(error: unknown): error is ApiError {
  if (isPreconditionFailed(error)) return true;
  if (!isConflict(error)) return false;
  if (error.code !== undefined) return error.code === 'placement.concurrent_update';
  return /generation|concurrent/i.test(error.detail);
}
