import type { Config } from '../config/config.ts';
import { escapeControls } from '../text/print.ts';

/** The formats of lines, from oslo.log's options of the same names. */
export type OsloFormats = Pick<
  Config['default'],
  'loggingContextFormatString' | 'loggingDefaultFormatString' | 'loggingUserIdentityFormat'
>;

/** An entry of the log, as pino writes it in JSON. */
export type LogEntry = Readonly<Record<string, unknown>>;

/**
 * Formats an entry of the log as oslo.log does (`ContextFormatter`), and the entry of a request as upstream's
 * `placement.requestlog` does, with the duration at its end. The stack of an error follows on separate lines. Control
 * characters are escaped, so that no value can begin a new line.
 *
 * @param json the entry as pino writes it.
 * @returns text that ends with a line feed.
 */
export function osloLine(json: string, formats: OsloFormats): string {
  const entry: LogEntry = JSON.parse(json);
  const error = errorOf(entry);
  const fields = commonFields(entry);
  const identity: Fields = {
    user: entry.user,
    user_id: entry.user,
    tenant: entry.project,
    project: entry.project,
    project_id: entry.project,
    domain: entry.domain,
    system_scope: entry.systemScope,
    user_domain: entry.userDomain,
    project_domain: entry.projectDomain,
  };
  const head = format(
    entry.requestId === undefined ? formats.loggingDefaultFormatString : formats.loggingContextFormatString,
    {
      ...fields,
      ...identity,
      request_id: entry.requestId,
      global_request_id: entry.globalRequestId ?? 'None',
      user_identity: format(formats.loggingUserIdentityFormat, identity),
      message: error === undefined ? messageText(entry) : `${messageText(entry)}: ${error.type}: ${error.message}`,
    },
  );
  if (error === undefined) return `${head}\n`;
  const prefix = format(exceptionPrefix, fields);
  return [head, ...error.stack.split('\n').map((line) => `${prefix}${escapeControls(line)}`), ''].join('\n');
}

/** oslo.log's default of `logging_exception_prefix`. */
const exceptionPrefix = '%(asctime)s.%(msecs)03d %(process)d ERROR %(name)s ';

type Fields = Readonly<Record<string, unknown>>;

function commonFields(entry: LogEntry): Fields {
  const time = new Date(String(entry.time));
  return {
    asctime: localTime(time),
    msecs: time.getMilliseconds(),
    isotime: time.toISOString(),
    process: entry.pid ?? process.pid,
    levelname: levelNames[String(entry.level)] ?? 'INFO',
    name: isRequest(entry) ? 'placement.requestlog' : 'placement',
    instance: '',
    color: '',
    resource: '',
  };
}

const levelNames: Readonly<Record<string, string>> = {
  debug: 'DEBUG',
  info: 'INFO',
  warn: 'WARNING',
  error: 'ERROR',
  fatal: 'CRITICAL',
};

/** Replaces Python's `%(name)s`, `%(name)d` and `%(name)03d`. A field without a value is a dash. */
const format = (template: string, fields: Fields): string =>
  template.replace(/%\((\w+)\)(0?)(\d*)[sd]|%%/g, (all, name?: string, zero?: string, width?: string) => {
    if (name === undefined) return all.slice(1);
    const value = fields[name];
    const text = value === undefined || value === null ? '-' : escapeControls(String(value));
    return text.padStart(Number(width ?? 0), zero === '0' ? '0' : ' ');
  });

const isRequest = (entry: LogEntry): boolean => entry.msg === 'request';

/** Fields that are already in the head of the line, or in the stack below it. */
const saidElsewhere: ReadonlySet<string> = new Set([
  ...['level', 'time', 'pid', 'msg', 'err', 'requestId', 'globalRequestId'],
  ...['user', 'project', 'domain', 'systemScope', 'userDomain', 'projectDomain'],
]);

/** The message of an entry, with its fields behind it. */
export function messageText(entry: LogEntry): string {
  if (isRequest(entry)) {
    const { client, method, url, status, bytes, microversion, ms } = entry;
    // A quotation mark in the URL would end the quoted part of the line.
    const target = String(url).replaceAll('"', '%22');
    return (
      `${client ?? '-'} "${method} ${target}" status: ${status} len: ${bytes ?? '-'} ` +
      `microversion: ${String(microversion ?? '-')} ms: ${ms}`
    );
  }
  const rest = Object.entries(entry).filter(([name]) => !saidElsewhere.has(name));
  return [
    entry.msg,
    ...rest.map(([name, value]) => `${name}: ${typeof value === 'string' ? value : JSON.stringify(value)}`),
  ].join(' ');
}

type LoggedError = { readonly type: string; readonly message: string; readonly stack: string };

/** The error of an entry, as pino's serializer writes it. */
export function errorOf({ err }: LogEntry): LoggedError | undefined {
  if (typeof err !== 'object' || err === null) return undefined;
  const { type, message, stack } = err as Partial<Record<keyof LoggedError, unknown>>; // each is checked by String
  return { type: String(type ?? 'Error'), message: String(message ?? ''), stack: String(stack ?? '') };
}

/** `2026-11-21 12:00:00`, in the time zone of the machine, as Python's `asctime`. */
function localTime(time: Date): string {
  const two = (part: number): string => String(part).padStart(2, '0');
  const date = [time.getFullYear(), two(time.getMonth() + 1), two(time.getDate())].join('-');
  return `${date} ${[time.getHours(), time.getMinutes(), time.getSeconds()].map(two).join(':')}`;
}
