import { STATUS_CODES } from 'node:http';
import type { ApiError } from '../request/errors.ts';
import { since } from '../rest/microversions.ts';
import { bestOffer } from './accept.ts';
import { renderText } from './answer.ts';
import type { ErrorContext, Rendered } from './dialect.ts';

/**
 * Renders an error as upstream's web framework does: JSON in the API-SIG form, or HTML or plain text where the client
 * accepts nothing else.
 */
export function renderError(error: ApiError, context: ErrorContext): Rendered {
  const title = titleOf(error.status);
  const body = sentence(error, context);
  switch (bestOffer(context.accept, ['text/html', 'application/json'])) {
    case 'application/json':
      return render(error, 'application/json', JSON.stringify({ errors: [jsonError(error, title, body, context)] }));
    case 'text/html':
      return render(
        error,
        'text/html; charset=UTF-8',
        htmlError(error.status, title, sentence(error, context, escapeHtml)),
      );
    default:
      return render(error, 'text/plain; charset=UTF-8', `${error.status} ${title}\n\n${withoutTags(body)}`);
  }
}

/** The Content-Type of an error in answer to HEAD, which has no body: upstream's framework always says this one. */
export const typeForHead = 'text/html; charset=UTF-8';

const render = (error: ApiError, contentType: string, body: string): Rendered =>
  renderText(body, error.status, { ...error.headers, 'content-type': contentType });

function jsonError(error: ApiError, title: string, body: string, context: ErrorContext) {
  return {
    status: error.status,
    title,
    detail: withoutTags(body),
    ...((context.minorVersion ?? 0) >= since.errorCodes ? { code: error.code } : {}),
    request_id: context.requestId,
    ...(error.status === 406 && context.minorVersion === undefined
      ? { max_version: context.versions.max, min_version: context.versions.min }
      : {}),
  };
}

const titleOf = (status: number): string => titles[status] ?? STATUS_CODES[status] ?? 'Error';

/** The titles of statuses that upstream's framework words differently from Node.js. */
const titles: Readonly<Record<number, string>> = { 413: 'Request Entity Too Large' };

/** The generic sentence of the status, and then the detail: clients match on parts of both. */
function sentence(error: ApiError, context: ErrorContext, quote = (text: string) => text): string {
  const isOwn = (context.minorVersion ?? 0) >= since.consumers;
  const detail = quote(isOwn ? (error.sentence ?? error.message) : error.message);
  switch (error.status) {
    case 405:
      return `The method ${context.method} is not allowed for this resource. <br /><br />\n${detail}`;
    case 406:
      return (
        'The resource could not be generated that was acceptable to your browser\n' +
        `(content of type ${quote(context.accept)}. <br /><br />\n${detail}`
      );
    case 415:
      return (
        `The request media type ${quote(context.contentType)} is not supported by this server.\n` +
        `<br /><br />\n${detail}`
      );
    default:
      return `${explanations[error.status] ?? titleOf(error.status)}<br /><br />\n${detail}\n\n`;
  }
}

const explanations: Readonly<Record<number, string>> = {
  400: 'The server could not comply with the request since it is either malformed or otherwise incorrect.',
  403: 'Access was denied to this resource.',
  404: 'The resource could not be found.',
  409: 'There was a conflict when trying to complete your request.',
  412: 'Request precondition failed.',
  413: 'The body of your request was too large for this server.',
  500: 'The server has either erred or is incapable of performing the requested operation.',
  503: 'The server is currently unavailable. Please try again at a later time.',
};

/** The text without tags; tags for a line break become a line feed. */
const withoutTags = (text: string): string =>
  withTags(text.replaceAll('\n', ' '), (tagged) => tagged.replaceAll(/<br.*?>/g, '\n'))
    .split('\n')
    .map((line) => withTags(line, (tagged) => tagged.replaceAll(/<!--|-->|<.*?>/g, ''), withoutComment))
    .join('\n');

/**
 * After the last `>` there is no complete tag. Without this cut, each `<` after it would be followed to the end of the
 * text, and the time would grow by the square of its length.
 */
function withTags(text: string, change: (tagged: string) => string, changeRest = (rest: string) => rest): string {
  const end = text.lastIndexOf('>') + 1;
  return change(text.slice(0, end)) + changeRest(text.slice(end));
}

const withoutComment = (text: string): string => text.replaceAll('<!--', '');

const escapeHtml = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');

/** An error as upstream's web framework shows it to browsers. */
export const htmlError = (status: number, title: string, body: string): string =>
  `<html>\n <head>\n  <title>${status} ${title}</title>\n </head>\n` +
  ` <body>\n  <h1>${status} ${title}</h1>\n  ${body}\n </body>\n</html>`;
