import { bestOffer } from './accept.ts';
import { respondWith } from './answer.ts';
import { htmlError } from './render_error.ts';

/** The answer to a request without a token, without Keystone: it has a form of its own, and no microversion, as upstream's. */
export const unauthorized = (accept: string): Response =>
  frameworkError(
    accept,
    401,
    'Unauthorized',
    'This server could not verify that you are authorized to access the document you requested. Either you supplied the ' +
      'wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.',
    '',
  );

/** The same with Keystone, in the words of its middleware; it is JSON in any case. */
export const authenticationRequired = (): Response =>
  respond(
    401,
    'application/json',
    JSON.stringify({
      error: {
        code: 401,
        title: 'Unauthorized',
        message: 'The request you have made requires authentication.',
      },
    }),
  );

/** The answer to a request whose token Keystone cannot be asked about. */
export const keystoneUnavailable = (accept: string): Response =>
  frameworkError(
    accept,
    503,
    'Service Unavailable',
    'The server is currently unavailable. Please try again at a later time.',
    'The Keystone service is temporarily unavailable.',
  );

/** An error as upstream's framework renders those that leave its middleware. */
function frameworkError(accept: string, status: number, title: string, explanation: string, detail: string): Response {
  const message = `${explanation}<br /><br />\n${detail}\n\n`;
  switch (bestOffer(accept, ['text/html', 'application/json'])) {
    case 'application/json':
      return respond(status, 'application/json', JSON.stringify({ message, code: `${status} ${title}`, title }));
    case 'text/html':
      return respond(status, 'text/html; charset=UTF-8', htmlError(status, title, message));
    default:
      return respond(status, 'text/plain; charset=UTF-8', `${status} ${title}\n\n${explanation}\n\n ${detail}  `);
  }
}

const respond = (status: number, contentType: string, body: string): Response =>
  respondWith(body, status, { 'content-type': contentType });
