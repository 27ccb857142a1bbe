import { CommitsUnconfirmed } from './commit_watch.ts';
import { isLockRefused, LockWaitTooLong } from './slow_lane.ts';
import {
  hasSqlstate,
  isLostRace,
  isOutOfRoom,
  isReadOnly,
  isTimedOut,
  isTooManyConnections,
  isUnavailable,
  isUnstorable,
  NoIdLeft,
  sqlstate,
} from './sqlstate.ts';

/** What an error of the database means for the request that it failed. */
type FailureKind =
  /** The database cannot be reached, or does not serve now. */
  | 'unavailable'
  /** The database has no place for a further connection, and the service has none. */
  | 'no connection left'
  /** The server waits for a synchronous standby before it answers commits. */
  | 'commits unconfirmed'
  /** The server has no disk or memory left for the statement, or cannot use its files. */
  | 'out of room'
  /** The database takes no writes. */
  | 'read-only'
  /** A table has no id left for a new row, until an operator acts. */
  | 'no id left'
  /** A statement exceeded its time limit. */
  | 'timed out'
  /** Another transaction held a lock for too long. */
  | 'lock refused'
  /** The request waited in the slow lane, and the lock was not released in time. */
  | 'lock wait too long'
  /** Another transaction changed the same rows; the same request may succeed now. */
  | 'lost race'
  /** Another row has a name, a UUID or another key that must be unique. */
  | 'taken'
  /** A number in the request is too large for its column. */
  | 'number too large'
  /** The encoding of the database cannot store a text in the request. */
  | 'text not storable';

/**
 * The kind of an error; undefined for errors that are not of the database, and for errors that no request can cause.
 */
export function failureKind(error: unknown): FailureKind | undefined {
  if (error instanceof CommitsUnconfirmed) return 'commits unconfirmed';
  if (error instanceof LockWaitTooLong) return 'lock wait too long';
  if (error instanceof NoIdLeft) return 'no id left';
  if (isOutOfRoom(error)) return 'out of room';
  if (isReadOnly(error)) return 'read-only';
  if (isTooManyConnections(error)) return 'no connection left';
  if (isUnavailable(error)) return 'unavailable';
  if (isTimedOut(error)) return 'timed out';
  if (isLockRefused(error)) return 'lock refused';
  if (isLostRace(error)) return 'lost race';
  if (hasSqlstate(error, sqlstate.uniqueViolation)) return 'taken';
  if (!isUnstorable(error)) return undefined;
  return hasSqlstate(error, sqlstate.numberOutOfRange) ? 'number too large' : 'text not storable';
}

/**
 * Why the database could not be reached, as text. Node joins the errors of several addresses in one that has no
 * message.
 */
export function failureOf(error: unknown): string {
  if (error instanceof AggregateError && error.message === '') {
    return error.errors.map((each: unknown) => failureOf(each)).join(', ');
  }
  return error instanceof Error ? error.message : String(error);
}
