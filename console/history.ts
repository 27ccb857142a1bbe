import { ApiError } from '../src/client/errors.ts';
import { placement } from './session.ts';

/**
 * Whether the service keeps a history now; undefined where this user may not know. Its records stay when it is switched off, and consumers are
 * followed only while it is on.
 */
export async function isHistoryOn(signal: AbortSignal): Promise<boolean | undefined> {
  try {
    for await (const _ of placement.changes({ parts: ['usages', 'consumers'], signal })) return true;
  } catch (error) {
    if (signal.aborted) throw error;
    if (error instanceof ApiError && error.status === 400) return false;
  }
  return undefined;
}
