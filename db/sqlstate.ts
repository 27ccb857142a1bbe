import { isDatabaseError } from './connect.ts';

/** Conditions that our statements provoke on purpose, or wait out. */
export const sqlstate = {
  uniqueViolation: '23505',
  foreignKeyViolation: '23503',
  deadlockDetected: '40P01',
  serializationFailure: '40001',
  lockNotAvailable: '55P03',
  undefinedTable: '42P01',
} as const;

/** Whether an error is the server's refusal for one of these conditions. */
export const hasSqlstate = (error: unknown, ...states: readonly string[]): boolean =>
  isDatabaseError(error) && error.code !== undefined && states.includes(error.code);

/** Whether the statement lost a race that the server resolved against it, so that the same statement may succeed now. */
export const isLostRace = (error: unknown): boolean =>
  hasSqlstate(error, sqlstate.deadlockDetected, sqlstate.serializationFailure);
