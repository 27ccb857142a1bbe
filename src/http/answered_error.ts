import type { Logger } from 'pino';
import { failureKind } from '../../db/engine/failures.ts';
import type { Outages } from '../log/outages.ts';
import { ApiError, badRequest, conflict, errorCodes, tryLater } from '../request/errors.ts';
import { messageOf } from '../text/print.ts';
import type { Exchange } from './exchange.ts';

/** Where errors that no endpoint expects are noted. */
export type ErrorLog = { readonly outages: Outages; readonly logger: Pick<Logger, 'error'> };

/** The error that a client gets for any error of its request. What no endpoint expects is noted, once for all failures of the database. */
export function answeredError(
  error: unknown,
  { requestId, globalRequestId }: Exchange,
  method: string,
  { outages, logger }: ErrorLog,
): ApiError {
  if (error instanceof ApiError) return error;
  if (!outages.notice(error)) logger.error({ err: error, requestId, globalRequestId }, 'Unexpected error');
  return answerToUnexpected(error, requestId, method);
}

/** The answer to an error that no endpoint expects: most answers only refer to the log. */
function answerToUnexpected(error: unknown, requestId: string, method: string): ApiError {
  switch (failureKind(error)) {
    case 'unavailable':
      return tryLater('The database cannot be reached; please retry.');
    case 'access refused':
      return tryLater('The database refuses the login of the service; the log has the reason for operators.');
    case 'not permitted':
      return tryLater(
        'The role of the service lacks a privilege in the database; the log has the reason for operators.',
      );
    case 'other schema':
      return tryLater('Tables of the database are gone, or of another release; the log has the reason for operators.');
    case 'no connection left':
      return tryLater('The database has no connection left for the service; please retry.');
    case 'commits unconfirmed':
      return tryLater('The database does not confirm commits, its synchronous standby may be gone; please retry.');
    case 'no space left':
      return tryLater('The database has no disk or memory left, or cannot use its files; please retry.');
    case 'read-only':
      return tryLater('The database is read-only; please retry.');
    case 'prepared statements lost':
      return tryLater(
        'A pooler of database connections does not support prepared statements; the log has the remedy for operators.',
      );
    case 'no id left':
      return tryLater(
        `The database has no id left for a new row: ${messageOf(error)}. "placement-status upgrade check" has the remedy for operators.`,
      );
    case 'lock wait too long':
      return tryLater('Another program holds a lock in the database that the request needs; please retry.');
    case 'timed out':
    case 'lock refused': // the role, or the database, may have its own lock_timeout
      return tryLater('The database did not answer in time; please retry.');
    case 'lost race':
      // A request that only reads is in conflict with a migration alone.
      if (method === 'GET' || method === 'HEAD') return tryLater('The database is being changed; please retry.');
      return conflict('Another request changed the same data; please retry.', errorCodes.concurrentUpdate);
    case 'number too large':
      return badRequest(`The database cannot store a number of the request: ${messageOf(error)}.`);
    case 'text not storable':
      return badRequest(
        `The encoding of the database is not UTF-8, and cannot store a text of the request: ${messageOf(error)}.`,
      );
    case 'taken': // endpoints that expect this error name the value
    case undefined:
      return new ApiError(500, `Unexpected error; the log tells more under ${requestId}.`);
  }
}
