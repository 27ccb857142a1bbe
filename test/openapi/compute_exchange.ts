/** Checks one request to the registry of services, and its answer, against openapi-compute.yaml. */
import { computeService } from '../../src/compute/versions.ts';
import { versionOfText } from '../../src/placement/versions.ts';
import { contractFor, validator } from './contract.ts';
import { computeDocument, isObject, objectAt } from './document.ts';
import type { Exchange } from './exchange.ts';
import { requestComplaints } from './request.ts';

export const isComputePath = (path: string): boolean => /^\/compute(?:$|[/?])/.test(path);

/** All differences between an exchange and openapi-compute.yaml, as sentences. */
export function checkComputeExchange(exchange: Exchange): readonly string[] {
  const [path = '', query = ''] =
    exchange.query === undefined ? exchange.path.split(/\?(.*)/s) : [exchange.path, exchange.query];
  const responseHeaders = new Map(
    Object.entries(exchange.responseHeaders).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const requestHeaders = new Map(
    Object.entries(exchange.requestHeaders).map(([name, value]) => [name.toLowerCase(), value]),
  );
  const shown = /^compute (2\.\d+)$/.exec(responseHeaders.get('openstack-api-version') ?? '')?.[1];
  const contract = contractFor(
    exchange.method,
    decodeURIComponent(path),
    shown === undefined ? computeService.defaultVersion : versionOfText(shown),
    computeDocument,
  );
  const complaints: string[] = [];
  const wanted = /^compute (2\.\d+)$/.exec(requestHeaders.get('openstack-api-version') ?? '')?.[1];
  if (shown !== undefined && wanted !== undefined && wanted !== shown) complaints.push(`it was made at ${shown}`);
  const range = [
    responseHeaders.get('openstack-api-minimum-version'),
    responseHeaders.get('openstack-api-maximum-version'),
  ];
  if (exchange.status !== 401 && range.join() !== 'compute 2.1,compute 2.75') complaints.push('the range is missing');

  const response = contract.responses[String(exchange.status)];
  if (!isObject(response)) {
    complaints.push(`this status is not one of ${Object.keys(contract.responses).join(', ')}`);
  } else {
    for (const [name, header] of Object.entries(objectAt(response, 'headers'))) {
      const value = responseHeaders.get(name.toLowerCase());
      if (!isObject(header)) continue;
      complaints.push(...validator(header.schema ?? {})(value).map((what) => `the header ${name} (${value}): ${what}`));
    }
    complaints.push(...bodyComplaints(objectAt(response, 'content'), exchange.responseBody ?? ''));
  }
  if (exchange.status < 300 && contract.operation !== undefined) {
    const request = { query, headers: requestHeaders, body: exchange.requestBody ?? '' };
    complaints.push(...requestComplaints(contract, contract.operation, request));
  }
  return complaints.map(
    (what) => `${exchange.method} ${exchange.path} at 2.${shown}, answered ${exchange.status}: ${what}.`,
  );
}

function bodyComplaints(content: ReturnType<typeof objectAt>, body: string): readonly string[] {
  const json = content['application/json'];
  if (!isObject(json)) return body === '' ? [] : ['there is a body, and should be none'];
  try {
    return validator(json.schema ?? {})(JSON.parse(body)).map((what) => `the body: ${what}`);
  } catch {
    return ['the body is not JSON'];
  }
}
