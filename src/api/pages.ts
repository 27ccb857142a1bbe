import * as v from 'valibot';
import { isUuidLike } from '../placement/uuid.ts';
import { badRequest } from '../request/errors.ts';
import type { ApiRequest } from '../rest/endpoint.ts';
import { text } from '../rest/json_schema.ts';
import { integerParameter } from '../rest/schema_check.ts';

/** The length of a page for a request without `limit`. */
export const usualLimit = 1000;

/** The parameters of lists that come in pages. @param maximum the largest `limit` */
export const pageParameters = (maximum: number) => ({
  limit: v.optional(integerParameter(1, maximum)),
  marker: v.optional(text()),
});

/**
 * Refuses a marker that can never have been in the list. Programs other than the API may have stored what is no UUID,
 * and links to the next page name it.
 *
 * @param exists whether something has this text for its UUID
 */
export function checkMarker(marker: string | undefined, exists: (marker: string) => boolean): void {
  if (marker === undefined || isUuidLike(marker) || (marker !== '' && exists(marker))) return;
  throw badRequest(`Invalid query string parameters: Expected 'marker' parameter to be a UUID. Got: ${marker}`);
}

/** Links to the next page: the same query, beginning behind the last of this one. */
export function nextLink(request: ApiRequest, path: string, last: string) {
  const query = new URLSearchParams([
    ...request.query().entries.filter(([name]) => name !== 'marker'),
    ['marker', last],
  ] as [string, string][]);
  return [{ rel: 'next', href: `${request.prefix}${path}?${query}` }];
}
