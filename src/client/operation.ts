import type { Microversion, Since } from './microversions.ts';

/** A parameter of a query, with the minor version that brought it, or this form of it. */
export type Parameter = {
  readonly name: string;
  readonly value: string;
  readonly since?: number;
};

/** One request, before its version is known. */
export type Operation = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** Below the endpoint, encoded. */
  readonly path: string;
  /** The minor versions that have it. */
  readonly since?: number;
  readonly until?: number;
  readonly query?: readonly Parameter[];
  /** The body as a version has it. */
  readonly body?: (minor: number) => unknown;
  /**
   * Whether it may be sent again when its answer is lost: reads, and writes that a generation keeps from being done twice.
   * Default: GET may.
   */
  readonly repeatable?: (minor: number) => boolean;
  /** What the resource must be; from 1.40. */
  readonly ifMatch?: IfMatch | undefined;
};

/** Entity tags, as `etag` of an answer tells them: the resource must have one of these, or, for `*`, be there. */
export type IfMatch = string | readonly string[];

/** Microversion 1.40, which is this service's and not OpenStack's, brought entity tags. */
export const entityTagsSince = 40;

/** Fields that an answer has from 1.40 on. */
export type Tagged<Version extends Microversion> = Since<
  Version,
  '1.40',
  {
    /** Says what the content is: it is another one after every change, and does not move with generations and usages. */
    readonly etag: string;
  }
>;

/** How one call is made. */
export type CallOptions = {
  /** Ends the call, with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** How long the call may take with everything that is repeated. Default: that of the client. */
  readonly deadlineMs?: number | undefined;
};

/** How one write is made. */
export type WriteOptions = CallOptions & {
  /**
   * Writes only what was read: where it was changed since, nothing is done, and the server answers 412. From 1.40.
   *
   * @see isPreconditionFailed
   */
  readonly ifMatch?: IfMatch | undefined;
};

/** A successful answer. */
export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  /** The parsed body; undefined where there is none. */
  readonly body: unknown;
  /** The minor version that it was made at. */
  readonly minor: number;
};

/** Sends an operation and resolves with its success. @throws PlacementError, or the reason of the signal. */
export type Call = (operation: Operation, options?: WriteOptions) => Promise<Reply>;

/** A path of encoded segments: `pathOf('traits', name)`. */
export const pathOf = (...segments: readonly string[]): string =>
  segments.map((s) => `/${encodeURIComponent(s)}`).join('');

/** For writes that name a generation at every version, and so may be sent again. */
export const isGuarded = (): boolean => true;

/** The path with its query; what has a meaning of its own in these queries stays readable. */
export function targetOf({ path, query = [] }: Operation): string {
  if (query.length === 0) return path;
  const encode = (text: string) =>
    encodeURIComponent(text).replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%21', '!');
  return `${path}?${query.map(({ name, value }) => `${encode(name)}=${encode(value)}`).join('&')}`;
}

/** Reads the body of an answer as what the API says that it is at this version: the server is trusted in that. */
export async function answered<Answer>(reply: Promise<Reply>): Promise<Answer> {
  return (await reply).body as Answer;
}
