import { type Logger, pino } from 'pino';

/**
 * The log of the process: JSON lines on standard error, written without blocking, and completely when the process ends by
 * itself.
 *
 * @param worker which of the processes that serve one port this is; its lines say so, with the process id
 */
export function openLog(debug: boolean, worker?: number): Logger {
  return pino(
    {
      level: debug ? 'debug' : 'info',
      base: worker === undefined ? null : { worker, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    pino.destination({ fd: process.stderr.fd, sync: false }),
  );
}
