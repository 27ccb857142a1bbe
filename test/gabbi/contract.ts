import { checkExchange } from '../openapi/exchange.ts';
import { type Exchange, splitUrl } from './send.ts';

/**
 * Holds an exchange of a gabbi run against openapi.yaml.
 *
 * @throws Error with everything in which they differ.
 */
export function holdToContract({ request, response }: Exchange): void {
  const { status, reason, ...responseHeaders } = response.headers;
  const complaints = checkExchange({
    method: request.method,
    path: splitUrl(request.url).target,
    requestHeaders: request.headers,
    requestBody: Buffer.from(request.body).toString('utf8'),
    status: response.status,
    responseHeaders,
    responseBody: response.text,
  });
  if (complaints.length > 0) throw new Error(`It is not as openapi.yaml says.\n${complaints.join('\n')}`);
}
