import { ApiError } from '../request/errors.ts';
import { bestOffer } from './accept.ts';
import { bareResponse } from './answer.ts';
import { htmlError, renderText, typeForHead } from './dialect.ts';

/** The properties of a request on which the form of these answers depends. */
type FormChoice = { readonly method: string; readonly accept: string };

/**
 * The answer to a request without a token, without Keystone: it has a special form, and no microversion, as in
 * upstream.
 *
 * @param detail what is missing; none as in upstream
 */
export const unauthorized = (choice: FormChoice, detail = ''): Response =>
  frameworkError(
    choice,
    401,
    'Unauthorized',
    'This server could not verify that you are authorized to access the document you requested. Either you supplied ' +
      'the wrong credentials (e.g., bad password), or your browser does not understand how to supply the credentials ' +
      'required.',
    detail,
  );

/**
 * The answer to a request without a valid token of Keystone, in the words of Keystone's middleware. It is always JSON, and has this
 * Content-Type in answer to HEAD as well.
 */
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

/** The token of a long-lived request is no longer valid; the answer is the same as to a new request with this token. */
export class TokenRefused extends ApiError {
  readonly response: Response;

  constructor(response: Response) {
    super(401, 'The token is no longer valid.');
    this.response = response;
  }
}

/** The content of both forms of these answers. */
export const unavailableDetail = 'The Keystone service is temporarily unavailable.';
export const busyDetail = 'Too many requests wait for the Keystone service already.';
/** After how long a client may retry, in seconds. */
export const busyAfterSeconds = 5;

/** The answer to a request whose token cannot be validated, since Keystone does not answer. */
export const keystoneUnavailable = (choice: FormChoice): Response => serviceUnavailable(choice, unavailableDetail);

/** The answer to a request whose token is not validated, since too many requests wait for Keystone already. */
export const keystoneBusy = (choice: FormChoice): Response => {
  const response = serviceUnavailable(choice, busyDetail);
  response.headers.set('retry-after', String(busyAfterSeconds));
  return response;
};

const serviceUnavailable = (choice: FormChoice, detail: string): Response =>
  frameworkError(
    choice,
    503,
    'Service Unavailable',
    'The server is currently unavailable. Please try again at a later time.',
    detail,
  );

/** An error in the form of upstream's framework for errors of its middleware. */
function frameworkError(
  { method, accept }: FormChoice,
  status: number,
  title: string,
  explanation: string,
  detail: string,
): Response {
  const message = `${explanation}<br /><br />\n${detail}\n\n`;
  if (method === 'HEAD') return respond(status, typeForHead, '');
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
  bareResponse(renderText(body, status, { 'content-type': contentType }));
