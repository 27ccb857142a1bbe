import { bestOffer } from './accept.ts';
import { htmlError } from './render_error.ts';

const explanation =
  'This server could not verify that you are authorized to access the document you requested. Either you supplied the ' +
  'wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials required.';

/** The answer to a request without a token: it has a body of its own, and no microversion, as upstream's. */
export function unauthorized(accept: string): Response {
  const message = `${explanation}<br /><br />\n\n\n`;
  switch (bestOffer(accept, ['text/html', 'application/json'])) {
    case 'application/json':
      return respond('application/json', JSON.stringify({ message, code: '401 Unauthorized', title: 'Unauthorized' }));
    case 'text/html':
      return respond('text/html; charset=UTF-8', htmlError(401, 'Unauthorized', message));
    default:
      return respond('text/plain; charset=UTF-8', `401 Unauthorized\n\n${explanation}\n\n   `);
  }
}

const respond = (contentType: string, body: string) =>
  new Response(body, { status: 401, headers: { 'content-type': contentType } });
