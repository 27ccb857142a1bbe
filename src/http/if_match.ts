import type { Endpoint } from '../api/endpoint.ts';
import { versionText } from '../api/microversions.ts';
import { ApiError } from '../errors.ts';
import { type IfMatch, parseIfMatch } from '../placement/entity_tag.ts';
import type { Exchange } from './exchange.ts';

/**
 * What a request's If-Match asks for, where its endpoint takes one.
 *
 * @throws ApiError 406 at a version below: a client that wants to be safe must not be told that all went well.
 */
export function readIfMatch(
  headers: Headers,
  { ifMatchSince: since }: Endpoint,
  { version, api }: Exchange,
): IfMatch | undefined {
  const header = headers.get('if-match');
  if (header === null || since === undefined) return undefined;
  if (version >= since) return parseIfMatch(header);
  const { service } = api.parts;
  throw new ApiError(
    406,
    `If-Match needs microversion ${versionText(service, since)}, and the request is made at ` +
      `${versionText(service, version)}. Ask for that version, or leave If-Match out.`,
  );
}
