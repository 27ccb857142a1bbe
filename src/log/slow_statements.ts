import type { Logger } from 'pino';
import type { OnStatement } from '../../db/engine/pool.ts';
import { requestsServed } from './log.ts';

/**
 * Logs each statement that took `slowMs` or longer: its text, with `$1` instead of values, and the requests that waited
 * for it.
 *
 * @param slowMs in milliseconds; at -1 nothing is logged
 */
export function logSlowStatements(logger: Logger, slowMs: number): OnStatement | undefined {
  if (slowMs < 0) return undefined;
  return (text, ms) => {
    if (ms < slowMs) return;
    const requests = requestsServed();
    const [first] = requests;
    logger.warn(
      {
        ...first,
        ...(requests.length > 1 ? { requestIds: requests.map(({ requestId }) => requestId) } : {}),
        ms: Math.round(ms * 100) / 100,
        sql: text.replace(/\s+/g, ' ').trim(),
      },
      'Slow statement',
    );
  };
}
