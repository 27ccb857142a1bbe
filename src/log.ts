import { type Logger, pino } from 'pino';

/**
 * The log of the process: JSON lines on standard error, written without blocking, and completely when the process ends by
 * itself.
 */
export function openLog(debug: boolean): Logger {
  return pino(
    {
      level: debug ? 'debug' : 'info',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    pino.destination({ fd: process.stderr.fd, sync: false }),
  );
}
