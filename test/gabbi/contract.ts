import { checkComputeExchange, isComputePath } from '../openapi/compute_exchange.ts';
import { checkExchange } from '../openapi/exchange.ts';
import { type Exchange, splitUrl } from './send.ts';

/**
 * Checks an exchange of a gabbi run against openapi.yaml, or against openapi-compute.yaml for its paths.
 *
 * @throws Error with all differences
 */
export function holdToContract({ request, response }: Exchange): void {
  const { status, reason, ...responseHeaders } = response.headers;
  const path = splitUrl(request.url).target;
  const check = isComputePath(path) ? checkComputeExchange : checkExchange;
  const complaints = check({
    method: request.method,
    path,
    requestHeaders: request.headers,
    requestBody: Buffer.from(request.body).toString('utf8'),
    status: response.status,
    responseHeaders,
    responseBody: response.text,
  });
  if (complaints.length > 0) throw new Error(`It is not as the contract says.\n${complaints.join('\n')}`);
}
