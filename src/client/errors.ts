/** Everything that this client throws by itself: an {@link ApiError}, {@link VersionError}, {@link ConnectionError} or {@link AuthError}. */
export class PlacementError extends Error {
  override readonly name: string = 'PlacementError';
}

/** What the server says in `code` from microversion 1.23 on. */
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
  | 'placement.precondition_failed';

/** What is known of a refusal, beside the request. */
export type Refusal = {
  readonly status: number;
  /** Absent below microversion 1.23, and where something in front of the server answered. */
  readonly code: ErrorCode | undefined;
  readonly title: string;
  /** The server's words. */
  readonly detail: string;
  /** Under which the server's log tells more. */
  readonly requestId: string | undefined;
};

/** The server, or something in front of it, answered a request with an error. */
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
   * How often the request was sent. From the second time on a conflict may be with the first: its answer was lost, and it
   * may have been carried out.
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

/** Microversions that a server speaks, such as `1.0` to `1.40`. */
export type VersionRange = { readonly min: string; readonly max: string };

/**
 * - `invalid`: it is no microversion, or none that this client knows; nothing was sent.
 * - `unsupported`: the server does not speak it, or nothing that the client does.
 * - `no microversions`: the server knows no microversions, and the program did not leave the choice to the client.
 * - `too old`: what was asked for came with a newer microversion than the one that is spoken.
 */
export type VersionProblem = 'invalid' | 'unsupported' | 'no microversions' | 'too old';

/** Client and server have no version in common that would do. */
export class VersionError extends PlacementError {
  override readonly name = 'VersionError';
  readonly problem: VersionProblem;
  /** What the server speaks, where it was asked and said so. */
  readonly server: VersionRange | undefined;

  constructor(problem: VersionProblem, message: string, server?: VersionRange) {
    super(message);
    this.problem = problem;
    this.server = server;
  }
}

/** There was no answer: no connection, a lost one, or the deadline. */
export class ConnectionError extends PlacementError {
  override readonly name = 'ConnectionError';
  /** The request certainly did not reach the server. Otherwise it may have been carried out. */
  readonly unsent: boolean;

  constructor(message: string, options: { readonly unsent: boolean; readonly cause?: unknown }) {
    super(message, { cause: options.cause });
    this.unsent = options.unsent;
  }
}

/** Keystone gave no token, or its catalog has no placement service. */
export class AuthError extends PlacementError {
  override readonly name = 'AuthError';
}

/** Whether what was asked for is not there. */
export const isNotFound = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 404;

/** Whether a request was refused by the state of things: a name that is taken, no room left, a generation that moved. */
export const isConflict = (error: unknown): error is ApiError => error instanceof ApiError && error.status === 409;

/** Whether a write was refused since the resource is not what `ifMatch` says: it was changed, or is gone. */
export const isPreconditionFailed = (error: unknown): error is ApiError =>
  error instanceof ApiError && error.status === 412;

/**
 * Whether a write was refused because what it was based on has changed: read again, decide again, write again. Below
 * microversion 1.23, where errors have no code, it is told by the server's words.
 */
export function isConcurrentUpdate(error: unknown): error is ApiError {
  if (isPreconditionFailed(error)) return true;
  if (!isConflict(error)) return false;
  if (error.code !== undefined) return error.code === 'placement.concurrent_update';
  return /generation|concurrent/i.test(error.detail);
}
