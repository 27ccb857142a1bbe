import { escapeControls } from '../text/controls.ts';
import { type Entry, errorOf, messageText } from './oslo_line.ts';

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
  const entry: Entry = JSON.parse(json);
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
