/**
 * How long the header Retry-After of an answer asks to wait, in milliseconds; 0 without the header, and for a value that is neither a number
 * of seconds nor a date of HTTP (RFC 9110). A date counts from the Date of the answer, if the client sees it, since the clocks of two machines
 * differ.
 */
export function retryAfterMs(headers: Headers): number {
  const value = headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(value)) return Number(value) * 1000;
  const until = httpDate(value);
  return until === undefined ? 0 : Math.max(0, until - (httpDate(headers.get('date') ?? '') ?? Date.now()));
}

/** The time of a date in one of the three forms of RFC 9110; undefined for any other text. */
function httpDate(text: string): number | undefined {
  if (!/^(Mon|Tues?|Wed(nes)?|Thu(rs)?|Fri|Sat(ur)?|Sun)(day)?,? .*\d/.test(text)) return undefined;
  // The oldest form names no zone, and is of GMT, too.
  const time = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(time) ? undefined : time;
}
