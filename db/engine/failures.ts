/** Conditions that our statements expect and handle. */
export const sqlstate = {
  uniqueViolation: '23505',
  foreignKeyViolation: '23503',
  deadlockDetected: '40P01',
  serializationFailure: '40001',
  lockNotAvailable: '55P03',
  tooManyConnections: '53300',
  unknownDatabase: '3D000',
  notInThisState: '55000',
  undefinedTable: '42P01',
  undefinedColumn: '42703',
  undefinedFunction: '42883',
  undefinedObject: '42704',
  undefinedSchema: '3F000',
  undefinedKey: '42P10',
  insufficientPrivilege: '42501',
  queryCanceled: '57014',
  readOnlyTransaction: '25006',
  failedTransaction: '25P02',
  textTooLong: '22001',
  numberOutOfRange: '22003',
  sequenceEnded: '2200H',
  characterUnknown: '22P05',
  preparedAlready: '42P05',
  preparedNowhere: '26000',
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
  /** Where in the source of PostgreSQL the error comes from. Unlike the message, it is the same in all languages. */
  readonly routine?: string;
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
  (isDatabaseError(error) && error.code.startsWith('08') && !isRefusedByPooler(error));

/**
 * Whether the server, or a pooler, has no room for a further connection. Of several servers it is enough that one has no room: that server
 * may be the wanted one.
 */
const isTooManyConnections = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.tooManyConnections) ||
  (hasSqlstate(error, '08P01') && error instanceof Error && poolerIsFull.test(error.message)) ||
  (error instanceof AggregateError && error.errors.some(isTooManyConnections));

/**
 * Whether the server refuses further connections, while those that are open go on: it has no room for one, or it no longer accepts the login
 * since the password was changed.
 */
export const isConnectionRefused = (error: unknown): boolean => isTooManyConnections(error) || isAccessRefused(error);

/** The texts of PgBouncer at its limits, and the text of PostgreSQL at its limit, which PgBouncer passes on. */
const poolerIsFull =
  /no more connections allowed|(client|too many) connections exceeded|too many (clients|connections)|connection slots/;

/** PgBouncer has one code for all refusals, 08P01. After these texts, which are never translated, the next attempt would be refused too. */
const refusedForGood =
  /authentication failed|^auth failed|^login rejected|^no such (user|database)|^unsupported startup parameter|^SSL required/;
const isRefusedByPooler = (error: unknown): boolean =>
  isDatabaseError(error) && error.code.startsWith('08') && refusedForGood.test(error.message);

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
const isUnstorable = (error: unknown): error is Error =>
  hasSqlstate(error, sqlstate.textTooLong, sqlstate.characterUnknown, sqlstate.numberOutOfRange);

/** Whether node-postgres closed a connection because the server did not answer within `query_timeout`. */
export const isUnheard = (error: unknown): boolean => error instanceof Error && error.message === 'Query read timeout';

/** Whether the statement exceeded its time limit; nothing of it was done. */
export const isTimedOut = (error: unknown): boolean => hasSqlstate(error, sqlstate.queryCanceled);

/** Whether the server refuses the login: an unknown role, a wrong password, or no authentication that allows it. */
export const isRefusedLogin = (error: unknown): boolean => hasSqlstate(error, '28000', '28P01');

/**
 * Whether the server, or a pooler, runs, but refuses the login of the service until an operator acts: the password or pg_hba.conf was
 * changed, the role may not log in, or the database was dropped, renamed or closed. Nothing of the request was done.
 */
const isAccessRefused = (error: unknown): boolean =>
  isRefusedLogin(error) ||
  isRefusedByPooler(error) ||
  hasSqlstate(error, sqlstate.unknownDatabase) ||
  isRefusedBy(error, 'CheckMyDatabase', 'InitPostgres');

/**
 * Whether one of these routines of PostgreSQL refuses the state of the server, or of a database that is closed or invalid. The same SQLSTATE
 * has other meanings, such as a table without a replica identity whose deletions are published.
 */
const isRefusedBy = (error: unknown, ...routines: readonly string[]): boolean =>
  isDatabaseError(error) && error.code === sqlstate.notInThisState && routines.includes(error.routine ?? '');

/**
 * Whether the database could not be reached, or does not serve now: the connection broke or was refused; the server
 * starts, stops or has no connection, memory or disk left; or it is a standby that does not write yet. Only a later retry
 * can succeed.
 */
export function isUnavailable(error: unknown): boolean {
  if (isDatabaseError(error)) {
    if (isAccessRefused(error) || isReadOnly(error)) return true;
    return /^(08...|57P0[1-5]|53...|58...|25P0[34])$/.test(error.code);
  }
  if (!(error instanceof Error)) return false;
  if (error instanceof ConnectionNotMade) return true;
  if (error instanceof AggregateError && error.errors.length > 0) return error.errors.every(isUnavailable);
  if ('syscall' in error && error.syscall === 'connect') return true; // also ENOENT and EACCES, of a UNIX socket
  if ('syscall' in error && error.syscall === 'open') return false; // of a file
  if (isTlsRefused(error)) return true;
  if ('code' in error && typeof error.code === 'string') return networkErrors.has(error.code);
  return isUnheard(error) || brokenConnection.test(error.message);
}

/**
 * Whether the server answers, but has no disk or memory left for the statement, or cannot use its files. Statements
 * that do not need them succeed meanwhile.
 */
const isOutOfRoom = (error: unknown): boolean => isDatabaseError(error) && /^(53[0124]..|58...)$/.test(error.code);

/**
 * Whether the server refused a write because its transactions are read-only: it is a standby, or `default_transaction_read_only` is on for
 * the server, the database or the role. Reads succeed meanwhile, but for that of the state of the change log: a standby has none.
 */
export const isReadOnly = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.readOnlyTransaction) || isRefusedBy(error, 'pg_current_wal_insert_lsn');

/**
 * Whether a connection of the server lacks a prepared statement, or has it already: a pooler in transaction mode assigned the service
 * another connection. Nothing of the transaction was done.
 */
const arePreparedStatementsLost = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.preparedAlready, sqlstate.preparedNowhere);

/** Whether the role of the service lacks a privilege that the statement needs. The statement did nothing, and fails until an operator acts. */
export const isNotPermitted = (error: unknown): boolean => hasSqlstate(error, sqlstate.insufficientPrivilege);

/**
 * Whether the database lacks a table, a column, a key or a function that the statement needs. It was dropped, the tables were replaced by
 * tables of another release, or the search_path of the role no longer leads to it. The statement did nothing, and fails until an operator acts.
 */
export const isOtherSchema = (error: unknown): boolean =>
  error instanceof SchemaBehind ||
  hasSqlstate(
    error,
    sqlstate.undefinedTable,
    sqlstate.undefinedColumn,
    sqlstate.undefinedFunction,
    sqlstate.undefinedObject,
    sqlstate.undefinedSchema,
    sqlstate.undefinedKey,
  );

/**
 * Whether an error may be of one session alone. A session keeps the defaults that the role and the database had when it began, such as
 * read-only, a `search_path`, or another role; or it leads to a server that was the primary. A new session may succeed.
 */
export const mayBeOfSession = (error: unknown): boolean =>
  isReadOnly(error) || isOtherSchema(error) || isNotPermitted(error);

/** The database lacks tables or migrations that it had when the service started, as after an older dump was restored. */
export class SchemaBehind extends Error {}

/** A new row could not get an id: the sequence of its table is exhausted, or returns only taken ids. The transaction did nothing. */
export class NoIdLeft extends Error {}

/** Whether a statement violated a unique key of a table; nothing of it was done. */
export const isTakenIn = (error: unknown, table: string): boolean =>
  isDatabaseError(error) && error.code === sqlstate.uniqueViolation && error.table === table;

/**
 * Whether one item of a transaction caused its error: a name that is taken, a text that cannot be stored, a lock that
 * another program holds, or a new row for which no id is left. False if the database became unavailable, since then it is unknown
 * whether the transaction was committed. False for a time-out, a deadlock, a serialization failure or missing tables: they concern all items.
 */
export const isFaultOfOne = (error: unknown): boolean =>
  error instanceof NoIdLeft ||
  (isDatabaseError(error) &&
    !isUnavailable(error) &&
    !isTimedOut(error) &&
    !isLostRace(error) &&
    !isOtherSchema(error) &&
    !arePreparedStatementsLost(error));

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

/** Whether the server answers, and TLS fails: the certificate is not trusted, has expired, or is for another name. */
export const isTlsRefused = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' && ofTls.test(error.code);

/** The codes of Node.js if, for example, the certificate of the server has expired, or is for another name. */
const ofTls =
  /^(ERR_SSL_|ERR_TLS_|EPROTO$|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|HOSTNAME_MISMATCH$|INVALID_CA$|INVALID_PURPOSE$)/;

/** These errors of node-postgres have no code, only a text. */
const brokenConnection = new RegExp(
  `^(${[
    'Connection terminated',
    'Client has encountered a connection error',
    'Client was closed',
    'timeout exceeded when trying to connect',
    'timeout expired',
    'The server does not support SSL connections',
    'There was an error establishing an SSL connection',
    'SASL: ',
  ].join('|')})`,
);

/**
 * Whether one write of a batch caused an error, so that the other writes may be done without it: its text or number cannot be stored,
 * or it needs a new row for which no id is left. A claim that only removes what a consumer has needs no new row.
 */
export const isOfOneWrite = (error: unknown): boolean => isUnstorable(error) || error instanceof NoIdLeft;

/** The meaning of an error of the database for the request that failed. */
type FailureKind =
  /** The database cannot be reached, or does not serve now. */
  | 'unavailable'
  /** The database refuses the login of the service, until an operator acts. */
  | 'access refused'
  /** The role of the service lacks a privilege, until an operator acts. */
  | 'not permitted'
  /** The database lacks tables, or has the tables of another release, until an operator acts. */
  | 'other schema'
  /** The database has no room for a further connection, and the service has none. */
  | 'no connection left'
  /** The server waits for a synchronous standby before it answers commits. */
  | 'commits unconfirmed'
  /** The server has no disk or memory left for the statement, or cannot use its files. */
  | 'no space left'
  /** The database takes no writes. */
  | 'read-only'
  /** A table has no id left for a new row, until an operator acts. */
  | 'no id left'
  /** A pooler does not support prepared statements, until an operator acts. */
  | 'prepared statements lost'
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
  if (isOutOfRoom(error)) return 'no space left';
  if (arePreparedStatementsLost(error)) return 'prepared statements lost';
  if (isReadOnly(error)) return 'read-only';
  if (isTooManyConnections(error)) return 'no connection left';
  if (isAccessRefused(error)) return 'access refused';
  if (isUnavailable(error)) return 'unavailable';
  if (isNotPermitted(error)) return 'not permitted';
  if (isOtherSchema(error)) return 'other schema';
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
  return (error instanceof Error ? error.message : String(error)).trimEnd(); // that of OpenSSL has a new line
}

/** The server takes about a second to detect each deadlock. */
const attempts = 10;

/**
 * Repeats an operation that the server ended because of a deadlock or a serialization failure, and that therefore changed
 * nothing. While a migration locks one table after the other, deadlocks also happen to reads, and to the migration itself.
 *
 * @param operation one transaction
 * @throws any other error of the operation, and the error of the last attempt.
 */
export async function repeatLostRaces<T>(operation: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await operation();
    } catch (error) {
      if (!isLostRace(error) || attempt === attempts) throw error;
    }
  }
}

/**
 * The server does not confirm commits: it waits for a synchronous standby. A write that was sent may be committed later; a write that was
 * not sent is not done.
 */
export class CommitsUnconfirmed extends Error {
  constructor() {
    super('The database does not confirm commits; its synchronous standby may be gone.');
  }
}

/** No connection can be made as the settings are, and the files that they name: one may just be replaced. */
export class ConnectionNotMade extends Error {}

/** A request waited for a lock of another program for as long as a statement may take. Nothing was done for it. */
export class LockWaitTooLong extends Error {
  constructor(cause: unknown) {
    super('Another program holds a lock that the request needs, and did not release it in time.', { cause });
  }
}

/** Whether a transaction failed because another one held a lock for too long; nothing of it was done. */
export const isLockRefused = (error: unknown): boolean => hasSqlstate(error, sqlstate.lockNotAvailable);

/** The error if another process uses the folder of an embedded database: that process may also be starting or ending. */
export class FolderInUse extends Error {}
