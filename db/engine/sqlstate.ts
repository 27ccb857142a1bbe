/** Conditions that our statements expect and handle. */
export const sqlstate = {
  uniqueViolation: '23505',
  foreignKeyViolation: '23503',
  deadlockDetected: '40P01',
  serializationFailure: '40001',
  lockNotAvailable: '55P03',
  tooManyConnections: '53300',
  unknownDatabase: '3D000',
  undefinedTable: '42P01',
  insufficientPrivilege: '42501',
  queryCanceled: '57014',
  readOnlyTransaction: '25006',
  textTooLong: '22001',
  numberOutOfRange: '22003',
  sequenceEnded: '2200H',
  characterUnknown: '22P05',
} as const;

/**
 * Whether the server itself refused a statement (the error has an SQLSTATE), in contrast to a connection that broke.
 * The embedded engine throws errors of another class, so the properties of the error decide.
 */
export const isDatabaseError = (
  error: unknown,
): error is Error & {
  readonly code: string;
  readonly schema?: string;
  readonly table?: string;
  readonly constraint?: string;
} => error instanceof Error && 'severity' in error && 'code' in error && typeof error.code === 'string';

/** Whether the server refused a statement for one of these conditions. */
export const hasSqlstate = (error: unknown, ...states: readonly string[]): boolean =>
  isDatabaseError(error) && states.includes(error.code);

/**
 * Whether the server refuses connections only for now: it has too many, shuts down, crashed or starts up; or a pooler lets no connection
 * in, since it reaches no server, or has too many.
 */
export const isPassing = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.tooManyConnections, '57P01', '57P02', '57P03') ||
  (isDatabaseError(error) && error.code.startsWith('08') && !refusedForGood.test(error.message));

/** Whether the server, or a pooler, has no place for a further connection: of several servers, one that may be the wanted one. */
export const isTooManyConnections = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.tooManyConnections) ||
  (hasSqlstate(error, '08P01') && error instanceof Error && poolerIsFull.test(error.message)) ||
  (error instanceof AggregateError && error.errors.some(isTooManyConnections));

/** What PgBouncer says at its own limits, and what PostgreSQL says at its limit, which PgBouncer passes on. */
const poolerIsFull =
  /no more connections allowed|(client|too many) connections exceeded|too many (clients|connections)|connection slots/;

/** PgBouncer has one code for all reasons, 08P01. With these texts, which are never translated, it would refuse the next attempt too. */
const refusedForGood =
  /authentication failed|^auth failed|^login rejected|^no such (user|database)|^unsupported startup parameter|^SSL required/;

/**
 * Whether the server ended the statement because of a deadlock or a serialization failure. The same statement may
 * succeed now.
 */
export const isLostRace = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.deadlockDetected, sqlstate.serializationFailure);

/**
 * Whether the server cannot store a text or a number. With an encoding other than UTF-8 it lacks characters, or counts
 * bytes as characters; a column whose type was changed by SQL may only take smaller numbers. Nothing of the statement
 * was done.
 */
export const isUnstorable = (error: unknown): error is Error =>
  hasSqlstate(error, sqlstate.textTooLong, sqlstate.characterUnknown, sqlstate.numberOutOfRange);

/** Whether node-postgres closed a connection because the server did not answer within `query_timeout`. */
export const isUnheard = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout';

/** Whether the statement exceeded its time limit; nothing of it was done. */
export const isTimedOut = (error: unknown): boolean => hasSqlstate(error, sqlstate.queryCanceled);

/**
 * Whether the database could not be reached, or does not serve now: the connection broke or was refused; the server
 * starts, stops or has no connection, memory or disk left; or it is a standby that does not write yet. Only a later retry
 * can succeed.
 */
export function isUnavailable(error: unknown): boolean {
  if (isDatabaseError(error)) return /^(08...|57P0[1235]|53...|58...|25006|25P0[34])$/.test(error.code);
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.every(isUnavailable);
  if ('syscall' in error && error.syscall === 'open') return false; // of a file
  if ('code' in error && typeof error.code === 'string') return networkErrors.has(error.code);
  return isUnheard(error) || brokenConnection.test(error.message);
}

/**
 * Whether the server answers, but has no disk or memory left for the statement, or cannot use its files. Statements
 * that do not need them succeed meanwhile.
 */
export const isOutOfRoom = (error: unknown): boolean =>
  isDatabaseError(error) && /^(53[0124]..|58...)$/.test(error.code);

/**
 * Whether the server refused a write because its transactions are read-only: it is a standby, or `default_transaction_read_only` is on for
 * the server, the database or the role. Reads succeed meanwhile.
 */
export const isReadOnly = (error: unknown): boolean => hasSqlstate(error, sqlstate.readOnlyTransaction);

/** A new row could not get an id: the sequence of its table has ended, or meets taken ids only. Nothing of the transaction was done. */
export class NoIdLeft extends Error {}

/** Whether a statement violated a unique key of a table; nothing of it was done. */
export const isTakenIn = (error: unknown, table: string): boolean =>
  isDatabaseError(error) && error.code === sqlstate.uniqueViolation && error.table === table;

/**
 * Whether one item of a transaction caused its error: a name that is taken, a text that cannot be stored, a lock that
 * another program holds, or a new row for which no id is left. False if the database went away, since then it is unknown
 * whether the transaction was committed. False for a time-out, a deadlock or a serialization failure, since these concern all items.
 */
export const isFaultOfOne = (error: unknown): boolean =>
  error instanceof NoIdLeft ||
  (isDatabaseError(error) && !isUnavailable(error) && !isTimedOut(error) && !isLostRace(error));

/** The code of the error for a server that is not of the wanted kind, such as a standby. */
export const wrongServerCode = 'EWRONGSERVER';

const networkErrors: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  // The process, or the machine, has no file descriptor or port left for a connection.
  'EMFILE',
  'ENFILE',
  'EADDRNOTAVAIL',
  'ENOBUFS',
  wrongServerCode,
]);

/** These errors of node-postgres have no code, only a text. */
const brokenConnection =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded when trying to connect|timeout expired)/;

/**
 * Whether an error is that of one write of a batch, so that the others may be written without it: its text or number cannot be stored,
 * or it needs a new row for which no id is left. A claim that only removes what a consumer has needs none.
 */
export const isOfOneWrite = (error: unknown): boolean => isUnstorable(error) || error instanceof NoIdLeft;
