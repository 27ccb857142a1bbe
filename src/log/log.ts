import { AsyncLocalStorage } from 'node:async_hooks';
import { closeSync, fstatSync, openSync } from 'node:fs';
import path from 'node:path';
import { type DestinationStream, type Logger, pino } from 'pino';
import type { OnStatement } from '../../db/engine/connection.ts';
import type { Config } from '../config/config.ts';
import { escapeControls, escapeControlsInJson, messageOf } from '../text/print.ts';
import { errorOf, type LogEntry, messageText, osloLine } from './oslo_line.ts';

/** Where a process logs to. */
export type Log = {
  readonly logger: Logger;
  /**
   * Uses other settings from now on. A log file is opened by its name again, also if it is the same: it may have been renamed.
   *
   * @throws Error with the option if the file cannot be opened; then all stays as it was.
   */
  renew(settings: Config['default']): void;
  readonly health: LogHealth;
};

/** Whether lines of the log arrive where it is written to. */
export type LogHealth = {
  /** The file; undefined for standard error. */
  file(): string | undefined;
  /** Whether the last write succeeded. */
  isWritable(): boolean;
  /** How much text has not been written yet, in bytes. */
  waitingBytes(): number;
  /** How many lines were lost, since too much text was not written yet. */
  linesLost(): number;
};

/**
 * How much text may wait if the disk, or the program that reads standard error, is slow. Beyond it lines are dropped.
 */
const maxWaitingBytes = 16 * 1024 * 1024;

/**
 * How long a line waits, so that later lines share its write, in milliseconds: a write wakes a thread, which costs more than
 * a line.
 */
const gatheringMs = 10;

/** The largest size of a write. */
const pieceBytes = 64 * 1024;

/**
 * The kernel does not mix a write of up to this size (PIPE_BUF) with the writes of other processes to the same pipe.
 * Workers may share standard error.
 */
const sharedPieceBytes = 4096;

/**
 * Opens the log of the process, on standard error or in the file that `[DEFAULT] log_file` and `log_dir` name. Lines
 * are written without blocking, and all of them are written when the process ends by itself. If the log cannot be
 * written, the process continues.
 *
 * @param worker the number of this process, if several processes serve one port. Its lines have this number and the
 *   process id.
 * @param sharesOutput whether other processes write to the same standard error
 * @throws Error with the option if the file cannot be opened.
 */
export function openLog(settings: Config['default'], worker?: number, sharesOutput = worker !== undefined): Log {
  let output = openOutput(logFileOf(settings), sharesOutput);
  let form = lineForm(settings, output.isTerminal);
  const stream: DestinationStream = { write: (json) => output.write(form(json)) };
  const logger = pino(
    {
      level: levelOf(settings),
      base: worker === undefined ? null : { worker, pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    stream,
  );
  let lostBefore = 0;
  return {
    logger,
    health: {
      file: () => output.file,
      isWritable: () => output.isWritable(),
      waitingBytes: () => output.waitingBytes(),
      linesLost: () => lostBefore + output.linesLost(),
    },
    renew: (renewed) => {
      const file = logFileOf(renewed);
      if (file === output.file) output.reopen();
      else {
        const former = output;
        output = openOutput(file, sharesOutput);
        lostBefore += former.linesLost();
        former.end();
      }
      form = lineForm(renewed, output.isTerminal);
      logger.level = levelOf(renewed);
    },
  };
}

const levelOf = ({ debug }: Config['default']): string => (debug ? 'debug' : 'info');

/**
 * Opens a log file, or standard error where none is named.
 *
 * @throws Error with the option if the file cannot be opened.
 */
function openOutput(file: string | undefined, sharesOutput: boolean) {
  if (file !== undefined) checkWritable(file);
  const isShared = sharesOutput && file === undefined && !fstatSync(process.stderr.fd).isFile();
  const maxWrite = isShared ? sharedPieceBytes : pieceBytes;
  const unread = { untilMs: Number.POSITIVE_INFINITY };
  const destination = pino.destination({
    dest: file ?? process.stderr.fd,
    sync: false,
    maxLength: maxWaitingBytes,
    maxWrite,
    mode: 0o640,
    retryEAGAIN: () => performance.now() < unread.untilMs,
  });
  const failing = surviveErrors(destination, unread);
  const { write, flush, waitingBytes, linesLost } = gatherLines(destination, maxWrite);
  return {
    file,
    isTerminal: file === undefined && process.stderr.isTTY,
    write,
    reopen: () => {
      if (file === undefined) return;
      checkWritable(file);
      flush();
      destination.reopen();
    },
    /** Writes what waits, and closes a file. */
    end: () => {
      flush();
      if (file !== undefined) destination.end();
    },
    isWritable: () => !failing(),
    waitingBytes,
    linesLost,
  };
}

/**
 * The form of lines. Without configuration a terminal gets lines for people, and
 * any other output JSON.
 */
function lineForm(settings: Config['default'], isTerminal: boolean): (json: string) => string {
  if (settings.useJson === undefined) return isTerminal ? terminalLine : escapeControlsInJson;
  return settings.useJson ? escapeControlsInJson : (json) => osloLine(json, settings);
}

/**
 * Joins the lines of some milliseconds into one write of whole lines. When the process ends, the remaining lines are
 * written.
 *
 * @param mostBytes the largest size of a write, unless one line is longer
 */
function gatherLines(destination: ReturnType<typeof pino.destination>, mostBytes: number) {
  let lines = '';
  let bytes = 0;
  let timer: NodeJS.Timeout | undefined;
  let waitingBytes = 0;
  let linesLost = 0;
  destination.on('write', (written: number) => {
    waitingBytes -= written;
  });
  destination.on('drop', (text: string) => {
    waitingBytes -= Buffer.byteLength(text);
    linesLost += text.split('\n').length - 1;
  });
  const flush = (): void => {
    clearTimeout(timer);
    timer = undefined;
    if (lines === '') return;
    const written = lines;
    waitingBytes += bytes;
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
    if (bytes + added > mostBytes) flush();
    lines += line;
    bytes += added;
    timer ??= setTimeout(flush, gatheringMs);
  };
  return { write, flush, waitingBytes: () => waitingBytes, linesLost: () => linesLost };
}

/** After how long a failed write is retried, also without a further line: until it succeeds, alerts report that the log fails. */
const retryAfterMs = 1_000;

/** How long the end of the process waits for a program that does not read the log. */
const flushTimeoutMs = 1_000;

/**
 * Lets the process continue if the log cannot be written, for instance when the disk is full. It also lets the process end, since pino
 * would retry a flush for ever: after a failed write nothing is flushed, and a log that is not read is flushed for a second at most.
 *
 * @param unread until when a write that a full pipe refuses is retried, by `performance.now()`
 * @returns a function that returns whether the last write failed
 */
function surviveErrors(destination: ReturnType<typeof pino.destination>, unread: { untilMs: number }): () => boolean {
  let failed = false;
  let again: NodeJS.Timeout | undefined;
  destination.on('error', () => {
    failed = true;
    clearTimeout(again);
    again = setTimeout(() => destination.write(''), retryAfterMs).unref();
  });
  destination.on('write', () => {
    failed = false;
  });
  const flushSync = destination.flushSync.bind(destination);
  destination.flushSync = () => {
    if (failed) return;
    unread.untilMs = performance.now() + flushTimeoutMs;
    try {
      flushSync();
    } catch {
      failed = true;
    } finally {
      unread.untilMs = Number.POSITIVE_INFINITY;
    }
  };
  return () => failed;
}

/** Combines the two options as oslo.log does: an absolute path in `log_file`, as Kolla sets it, ignores the folder. */
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
      `The log file ${file} ([DEFAULT] log_file and log_dir) cannot be opened: ${reason}. Let this user write there, in ` +
        'a folder that exists, or leave both options out for standard error.',
      { cause: error },
    );
  }
}

/**
 * Formats an entry of the log for people at a terminal: time, level or status, and what happened.
 *
 *     12:00:00 200  GET /resource_providers  1.25 ms, admin, 1.39
 *     12:00:00 warn The database cannot be reached
 *
 * @param json the entry as pino writes it.
 * @returns text that ends with a line feed.
 */
export function terminalLine(json: string): string {
  const entry: LogEntry = JSON.parse(json);
  const time = new Date(String(entry.time)).toTimeString().slice(0, 8);
  if (entry.msg === 'request') {
    const about = [`${entry.ms} ms`, entry.user, entry.microversion].filter((each) => each !== undefined);
    return escapeControls(`${time} ${entry.status}  ${entry.method} ${entry.url}  ${about.join(', ')}`).concat('\n');
  }
  const error = errorOf(entry);
  const head = `${time} ${String(entry.level).padEnd(4)} ${messageText(entry)}`;
  const stack = error === undefined ? [] : error.stack.split('\n');
  return [head, ...stack.map((line) => `  ${line}`), ''].map((line) => escapeControls(line)).join('\n');
}

/** The ids of a request: its own id, and the global id of the operation that it belongs to. */
export type RequestIds = { readonly requestId: string; readonly globalRequestId: string | undefined };

const storage = new AsyncLocalStorage<readonly RequestIds[]>();

/** The requests that the current code runs for; an empty list outside of requests. */
export const requestsServed = (): readonly RequestIds[] => storage.getStore() ?? [];

/** Runs a function for these requests. A batch, for instance, runs for all requests that wait for it. */
export const onBehalfOf = <T>(requests: readonly RequestIds[], run: () => T): T => storage.run(requests, run);

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
