import { type IfMatch, parseIfMatch } from '../placement/entity_tag.ts';
import type { Route } from '../rest/endpoint.ts';
import { ApiError, badRequest } from '../rest/errors.ts';
import { versionText } from '../rest/versions.ts';
import type { Exchange } from './exchange.ts';

/**
 * The condition of If-Match, where the request has one and its endpoint takes it.
 *
 * @throws ApiError 406 at an older version: a success would make the client believe that the condition was checked; 400
 *   where the header is malformed.
 */
export function readIfMatch(
  headers: Headers,
  { ifMatchSince: since }: Route,
  { version, api }: Exchange,
): IfMatch | undefined {
  const header = headers.get('if-match');
  if (header === null || since === undefined) return undefined;
  if (version >= since) return parseIfMatch(header) ?? refuse(header);
  const { service } = api;
  throw new ApiError(
    406,
    `If-Match needs microversion ${versionText(service, since)}, and the request is made at ` +
      `${versionText(service, version)}. ` +
      (service.maxMinor < since
        ? 'This service does not offer that version ([api] max_microversion): leave If-Match out.'
        : 'Ask for that version, or leave If-Match out.'),
  );
}

function refuse(header: string): never {
  const found = header === '' ? 'empty' : `'${header.slice(0, 200)}'`;
  throw badRequest(
    `If-Match is neither * nor a list of entity tags such as W/"0123", but ${found}. Send the tag as it was in ETag, ` +
      'or leave If-Match out.',
  );
}
