import { badRequest } from '../request/errors.ts';
import type { ApiRequest } from './endpoint.ts';

/**
 * The preference `wait` of a request (RFC 7240), in seconds; undefined where the client states none.
 *
 * @throws ApiError 400 if it is no number of seconds in these bounds
 */
export function preferredWait(
  request: Pick<ApiRequest, 'header'>,
  { least, most }: { readonly least: number; readonly most: number },
): number | undefined {
  for (const [preference] of request.header('prefer')?.matchAll(preferences) ?? []) {
    const [name = '', value = ''] = (preference.split(';')[0] ?? '').split('=').map((each) => each.trim());
    if (name.toLowerCase() !== 'wait') continue;
    const text = value.replace(/^"(.*)"$/, '$1');
    const seconds = Number(text);
    if (/^[0-9]{1,9}$/.test(text) && seconds >= least && seconds <= most) return seconds;
    throw badRequest(`Prefer: wait is a number of seconds from ${least} to ${most}. Got: ${value.slice(0, 100)}`);
  }
  return undefined;
}

/** Preferences end with a comma that is not in a quoted text. */
const preferences = /(?:[^",]|"(?:[^"\\]|\\.)*"|")+/g;
