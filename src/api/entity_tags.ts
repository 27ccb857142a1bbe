import * as v from 'valibot';
import { type EntityTag, isMatch } from '../placement/entity_tag.ts';
import type { Answer, ApiRequest } from '../rest/endpoint.ts';
import { ApiError, errorCodes } from '../rest/errors.ts';
import { text } from '../rest/json_schema.ts';
import { since } from '../rest/microversions.ts';

/** For endpoints that change a resource with a tag. */
export const takesIfMatch = { ifMatchSince: since.entityTags } as const;

/**
 * Allows the field `etag` in a body, so that a client can send back what it has read. The field is ignored: only
 * If-Match is a condition.
 */
export const echoedTag = { etag: v.optional(text()) };

/** The body of an answer and the tag of what it represents: from 1.40 on in the field `etag` and in the header. */
export function tagged<Body extends object>(
  request: ApiRequest,
  json: Body,
  tag: () => EntityTag,
): Pick<Answer, 'etag'> & { readonly json: Body & { readonly etag?: EntityTag } } {
  if (request.version < since.entityTags) return { json };
  const etag = tag();
  return { json: { ...json, etag }, etag };
}

/** The tag of an answer without a body, from 1.40 on. */
export const headerTag = (request: ApiRequest, tag: () => EntityTag): Pick<Answer, 'etag'> =>
  request.version < since.entityTags ? {} : { etag: tag() };

/**
 * Checks a resource against If-Match, if the request has one.
 *
 * @param what names the resource, as the beginning of a sentence
 * @param tag the tag of the resource as it is; undefined where the resource does not exist
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
