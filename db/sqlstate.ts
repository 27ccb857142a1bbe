import { isDatabaseError } from './connect.ts';
import { isUnheard } from './pool.ts';

/** Conditions that our statements provoke on purpose, or wait out. */
export const sqlstate = {
  uniqueViolation: '23505',
  foreignKeyViolation: '23503',
  deadlockDetected: '40P01',
  serializationFailure: '40001',
  lockNotAvailable: '55P03',
  undefinedTable: '42P01',
  insufficientPrivilege: '42501',
  queryCanceled: '57014',
  textTooLong: '22001',
  characterUnknown: '22P05',
} as const;

/** Whether an error is the server's refusal for one of these conditions. */
export const hasSqlstate = (error: unknown, ...states: readonly string[]): boolean =>
  isDatabaseError(error) && states.includes(error.code);

/** Whether the statement lost a race that the server resolved against it, so that the same statement may succeed now. */
export const isLostRace = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.deadlockDetected, sqlstate.serializationFailure);

/**
 * Whether the server cannot store a text: in an encoding other than UTF-8 it lacks characters, or counts bytes as characters.
 * Nothing of the statement was done.
 */
export const isUnstorable = (error: unknown): error is Error =>
  hasSqlstate(error, sqlstate.textTooLong, sqlstate.characterUnknown);

/** Whether the statement took longer than it may; nothing of it was done. */
export const isTimedOut = (error: unknown): boolean => hasSqlstate(error, sqlstate.queryCanceled);

/**
 * Whether the database could not be reached, or does not serve now: the connection broke or was refused, the server starts,
 * stops or has no connection left, or is a standby that does not write yet. Asking again later is all that helps.
 */
export function isUnavailable(error: unknown): boolean {
  if (isDatabaseError(error)) return /^(08...|57P0[1235]|53300|25006|25P0[34])$/.test(error.code);
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.every(isUnavailable);
  if ('code' in error && typeof error.code === 'string') return networkErrors.has(error.code);
  return isUnheard(error) || brokenConnection.test(error.message);
}

const networkErrors: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** node-postgres tells these by their texts alone. */
const brokenConnection =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded when trying to connect|timeout expired)/;
