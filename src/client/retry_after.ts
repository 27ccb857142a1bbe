/**
 * How long the header Retry-After of an answer asks to wait, in milliseconds; 0 without the header, and for a value that is
 * neither a number of seconds nor a date of HTTP (RFC 9110). A date counts from the Date of the answer, if the client sees it,
 * since the clocks of two machines differ.
 */
export function retryAfterMs(headers: Headers): number {
  const value = headers.get('retry-after')?.trim() ?? '';
  if (seconds.test(value)) return Number(value) * 1000;
  const until = httpDate(value);
  return until === undefined ? 0 : Math.max(0, until - (httpDate(headers.get('date') ?? '') ?? Date.now()));
}

/** Up to some 300 years: of hundreds of digits the number would be Infinity. */
const seconds = /^\d{1,10}$/;

const month = '(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)';
const time = '\\d\\d:\\d\\d:\\d\\d';
const day = '(Mon|Tue|Wed|Thu|Fri|Sat|Sun)';
const longDay = '(Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day';

/** The three forms of a date in RFC 9110. Date.parse alone would accept other texts, and dates of other time zones. */
const dateForms = [
  new RegExp(`^${day}, \\d\\d ${month} \\d{4} ${time} GMT$`),
  new RegExp(`^${longDay}, \\d\\d-${month}-\\d\\d ${time} GMT$`),
  new RegExp(`^${day} ${month} [ \\d]\\d ${time} \\d{4}$`),
];

/** The time of a date of HTTP; undefined for any other text. */
function httpDate(text: string): number | undefined {
  if (!dateForms.some((form) => form.test(text))) return undefined;
  // The oldest form names no zone, and is of GMT, too.
  const date = Date.parse(text.endsWith('GMT') ? text : `${text} GMT`);
  return Number.isNaN(date) ? undefined : date;
}
