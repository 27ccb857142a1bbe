import { PlacementError } from './errors.ts';
import { type Microversion, type Since, versionNumber } from './microversions.ts';

/** A parameter of a query, with the version that introduced it or this form of its value. */
export type Parameter = {
  readonly name: string;
  readonly value: string;
  readonly since?: number;
};

/** One request whose version is not known yet. */
export type Operation = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** The path below the endpoint, encoded. */
  readonly path: string;
  /** The first and the last version that have this operation. */
  readonly since?: number;
  readonly until?: number;
  readonly query?: readonly Parameter[];
  /** Further headers. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The body in the form of a version. */
  readonly body?: (version: number) => unknown;
  /**
   * Whether the request may be sent again if its answer is lost. That is true for reads, and for writes that the server
   * cannot execute twice because of a generation. Default: only GET.
   */
  readonly repeatable?: (version: number) => boolean;
  /** The entity tags that the resource must have. From 2.1. */
  readonly ifMatch?: IfMatch | undefined;
  /**
   * How long the server may wait before it answers, in milliseconds. If there is no answer, the request is sent again
   * in this time, and requests the rest of the time. The deadline begins after it.
   */
  readonly waitMs?: number | undefined;
};

/** Entity tags, from the field `etag` of answers. The resource must have one of them; `*` means that it must exist. */
export type IfMatch = string | readonly string[];

/** Microversion 2.1 introduced entity tags. It is a version of this service, not of OpenStack. */
export const entityTagsSince = versionNumber('2.1');

/** Fields that an answer has from 2.1 on. */
export type Tagged<Version extends Microversion> = Since<
  Version,
  '2.1',
  {
    /**
     * Identifies the content: every change of the content changes the tag, but changes of generations and usages do
     * not.
     */
    readonly etag: string;
  }
>;

/** The options of one call. */
export type CallOptions = {
  /** Ends the call, which then throws the reason of the signal. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take, including all attempts; Infinity for no deadline. Default: the client's deadline. */
  readonly deadlineMs?: number | undefined;
};

/** The options of one write. */
export type WriteOptions = CallOptions & {
  /**
   * Writes only if the resource still has one of these tags. If it was changed, the server writes nothing and answers
   * 412. From 2.1.
   *
   * @see isPreconditionFailed
   */
  readonly ifMatch?: IfMatch | undefined;
};

/** The options of one claim. */
export type ClaimOptions = WriteOptions & {
  /**
   * Checks the claim and answers or throws as the claim would, but writes nothing. From 2.4; an older server refuses it, because
   * it does not know the key `dry_run` in the body.
   */
  readonly dryRun?: boolean | undefined;
};

/** The options of a claim by query. */
export type PlacingOptions = ClaimOptions & {
  /**
   * How long the claim may wait where it fits nowhere or a limit of its project is reached, in milliseconds, rounded up
   * to seconds. The deadline of the call begins after this time. While it waits, the client retries if the connection
   * is lost or the server restarts; the claim then keeps its place. The number of attempts is not limited. From 2.8.
   */
  readonly waitMs?: number | undefined;
  /**
   * A line of the project, 1 to 64 characters: its claims are placed strictly one after the other. Only together with
   * `waitMs`. From 2.8.
   */
  readonly line?: string | undefined;
};

/** A successful answer. */
export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined where there is none. */
  readonly body: unknown;
  /** The version of the answer. */
  readonly version: number;
};

/**
 * Sends an operation and returns the successful answer.
 *
 * @throws PlacementError, the reason of the signal, or TypeError for what cannot be sent
 */
export type Call = (operation: Operation, options?: WriteOptions) => Promise<Reply>;

/**
 * A path of encoded segments: `pathOf('traits', name)`. Half of a surrogate pair has no encoding and stays, for `Call` to refuse:
 * thrown here, the error would not reject the promise of the call.
 */
export const pathOf = (...segments: readonly string[]): string =>
  segments.map((s) => `/${halfOfPair.test(s) ? s : encodeURIComponent(s)}`).join('');

const halfOfPair = /\p{Surrogate}/u;

/** For writes that name a generation at every version, so that they may be sent again. */
export const isGuarded = (): boolean => true;

/** The path with its query. Characters that are part of the syntax of these queries are not escaped. */
export const targetOf = ({ path, query = [] }: Operation): string =>
  query.length === 0 ? path : `${path}?${queryText(query)}`;

/** The text of a query. */
export function queryText(query: readonly Parameter[]): string {
  const encode = (text: string) =>
    encodeURIComponent(text).replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%21', '!');
  return query.map(({ name, value }) => `${encode(name)}=${encode(value)}`).join('&');
}

/**
 * Sends an operation and returns the body of the answer with the type that the API has at this version. It trusts the server and checks
 * nothing.
 */
export type Ask = <Answer>(operation: Operation, options?: WriteOptions) => Promise<Answer>;

/** Makes the function that returns bodies from the one that returns whole answers. */
export const asking =
  (call: Call): Ask =>
  async <Answer>(operation: Operation, options?: WriteOptions) =>
    (await call(operation, options)).body as Answer;

/** Reads a list whose path is its name. @throws as for `listIn` */
export const listed = async <Item>(
  ask: Ask,
  name: string,
  operation: Pick<Operation, 'since' | 'query'>,
  options: CallOptions | undefined,
): Promise<readonly Item[]> =>
  listIn<Item>(await ask({ method: 'GET', path: pathOf(name), ...operation }, options), name);

/** The list under a key of an answer. @throws PlacementError where there is none: then it is not the service that has answered */
export function listIn<Item>(body: unknown, key: string): readonly Item[] {
  const list = (body as { readonly [name: string]: Item[] } | undefined)?.[key]; // of a text or a number a key is undefined
  if (Array.isArray(list)) return list;
  throw new PlacementError(`The answer has no ${key}: it is not that of a placement service. Check the endpoint.`);
}
