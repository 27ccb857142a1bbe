import type { Endpoint } from '../api/endpoint.ts';
import { versionText } from '../api/microversions.ts';
import { ApiError, badRequest } from '../errors.ts';
import { type IfMatch, parseIfMatch } from '../placement/entity_tag.ts';
import type { Exchange } from './exchange.ts';

/**
 * What a request's If-Match asks for, where its endpoint takes one.
 *
 * @throws ApiError 406 at a version below, since a client that wants to be safe must not be told that all went well; 400 where
 *   the header is none.
 */
export function readIfMatch(
  headers: Headers,
  { ifMatchSince: since }: Endpoint,
  { version, api }: Exchange,
): IfMatch | undefined {
  const header = headers.get('if-match');
  if (header === null || since === undefined) return undefined;
  if (version >= since) return parseIfMatch(header) ?? refuse(header);
  const { service } = api.parts;
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
  throw badRequest(
    `If-Match is neither * nor a list of entity tags such as W/"0123", but ${header === '' ? 'empty' : `'${header.slice(0, 200)}'`}. ` +
      'Send the tag as ETag told it, or leave If-Match out.',
  );
}
