import * as v from 'valibot';
import { ApiError, errorCodes } from '../errors.ts';
import { type EntityTag, isMatch } from '../placement/entity_tag.ts';
import { text } from '../schema/json_schema.ts';
import type { Answer, ApiRequest } from './endpoint.ts';

/** Microversion 1.40 brought entity tags: in answers, and If-Match in requests. */
const entityTagsSince = 40;

/** For endpoints that change a resource with a tag. */
export const takesIfMatch = { ifMatchSince: entityTagsSince } as const;

/** Lets a body carry the field `etag`, so that what was read can be sent back; If-Match alone is a condition. */
export const echoedTag = { etag: v.optional(text()) };

/** The body of an answer and the tag of what it represents: from 1.40 on in the field `etag` and in the header. */
export function tagged<Body extends object>(
  request: ApiRequest,
  json: Body,
  tag: () => EntityTag,
): Pick<Answer, 'etag'> & { readonly json: Body & { readonly etag?: EntityTag } } {
  if (request.version < entityTagsSince) return { json };
  const etag = tag();
  return { json: { ...json, etag }, etag };
}

/** The tag of an answer without a body, from 1.40 on. */
export const headerTag = (request: ApiRequest, tag: () => EntityTag): Pick<Answer, 'etag'> =>
  request.version < entityTagsSince ? {} : { etag: tag() };

/**
 * Holds a resource against the request's If-Match, if it has one.
 *
 * @param what names the resource, as the beginning of a sentence
 * @param tag that of the resource as it is; undefined where there is none
 * @throws ApiError 412
 */
export function requireMatch(request: ApiRequest, what: string, tag: () => EntityTag | undefined): void {
  if (request.ifMatch !== undefined && !isMatch(request.ifMatch, tag())) throw preconditionFailed(what);
}

/** A 412. @param what names the resource, as the beginning of a sentence */
export const preconditionFailed = (what: string): ApiError =>
  new ApiError(
    412,
    `${what} is not what If-Match says: it was changed, or is not there. Read it again, and decide by what it is now.`,
    { code: errorCodes.preconditionFailed },
  );
