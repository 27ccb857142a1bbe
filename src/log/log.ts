import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { Config } from '../config/config.ts';
import { messageOf } from '../message_of.ts';
import { osloLine } from './oslo_line.ts';

/** Where a process logs to. */
export type Log = {
  readonly logger: Logger;
  /** Opens the log file by its name again, after it was moved away; on standard error it does nothing. */
  reopen(): void;
};

/** What waits to be written, where the disk or the reader of standard error is slow; beyond it lines are dropped. */
const maxWaitingBytes = 16 * 1024 * 1024;

/** How long lines wait for others to be written with, in milliseconds: a write wakes a thread, which costs more than the line. */
const gatheringMs = 10;

/** So much is written to a pipe in one piece (PIPE_BUF), whoever else writes to it: the workers share standard error. */
const pieceBytes = 4096;

/**
 * The log of the process, on standard error or in the file that `[DEFAULT] log_file` and `log_dir` name, written without
 * blocking, and completely when the process ends by itself. A log that cannot be written does not end the process.
 *
 * @param worker which of the processes that serve one port this is; its lines say so, with the process id
 * @throws Error with the option where the file cannot be opened.
 */
export function openLog(settings: Config['default'], worker?: number): Log {
  const file = logFileOf(settings);
  if (file !== undefined) checkWritable(file);
  const destination = pino.destination({
    dest: file ?? process.stderr.fd,
    sync: false,
    maxLength: maxWaitingBytes,
    maxWrite: pieceBytes,
    mode: 0o640,
  });
  surviveErrors(destination);
  const gathered = gatherLines(destination);
  const stream: DestinationStream = settings.useJson
    ? gathered
    : { write: (json) => gathered.write(osloLine(json, settings)) };
  const logger = pino(
    {
      level: settings.debug ? 'debug' : 'info',
      base: worker === undefined ? null : { worker, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  return {
    logger,
    reopen: () => {
      if (file === undefined) return;
      gathered.flush();
      destination.reopen();
    },
  };
}

/** Writes together what comes within some milliseconds, in pieces of whole lines, and what is left when the process ends. */
function gatherLines(destination: ReturnType<typeof pino.destination>) {
  let lines = '';
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (lines === '') return;
    const written = lines;
    lines = '';
    bytes = 0;
    destination.write(written);
  };
  const flushSync = destination.flushSync.bind(destination);
  destination.flushSync = () => {
    flush();
    flushSync();
  };
  const write = (line: string): void => {
    const added = Buffer.byteLength(line);
    if (bytes + added > pieceBytes) flush();
    lines += line;
    bytes += added;
    timer ??= setTimeout(flush, gatheringMs);
  };
  return { write, flush };
}

/**
 * Lets the process go on, and end, where the disk is full: what is left is written when the process ends, and would be tried
 * for ever where writing fails.
 */
function surviveErrors(destination: ReturnType<typeof pino.destination>): void {
  let failed = false;
  destination.on('error', () => {
    failed = true;
  });
  destination.on('write', () => {
    failed = false;
  });
  const flushSync = destination.flushSync.bind(destination);
  destination.flushSync = () => {
    if (!failed) flushSync();
  };
}

/** As oslo.log puts the two options together: a file with an absolute path, as Kolla has it, is not looked for in the folder. */
function logFileOf({ logFile, logDir }: Config['default']): string | undefined {
  if (logDir === undefined) return logFile;
  return path.resolve(logDir, logFile ?? 'placement-api.log');
}

function checkWritable(file: string): void {
  try {
    closeSync(openSync(file, 'a', 0o640));
  } catch (error) {
    const reason = messageOf(error);
    throw new Error(
      `The log file ${file} ([DEFAULT] log_file and log_dir) cannot be opened: ${reason}. Let this user write there, or ` +
        'leave both options out for standard error.',
      { cause: error },
    );
  }
}
