import * as v from 'valibot';
import type { Config } from '../config/config.ts';
import { tokenOf } from '../fleet/follow/position.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import { type EntityTag, isMatch } from '../placement/entity_tag.ts';
import { since } from '../placement/microversions.ts';
import { isUuidLike } from '../placement/uuid.ts';
import { ApiError, badRequest, errorCodes } from '../request/errors.ts';
import type { Answer, ApiRequest } from '../rest/endpoint.ts';
import { text } from '../rest/json_schema.ts';
import { integerParameter } from '../rest/schema_check.ts';

/**
 * The header with the token of what the fleet shows now, from 2.5 on: a client that has read the answer follows the changes from
 * there. It must be called after the refresh, before the handler waits for anything else.
 */
export const changesToken = (
  { version }: Pick<ApiRequest, 'version'>,
  { recent }: Pick<FleetKeeper, 'recent'>,
): Pick<Answer, 'headers'> =>
  version >= since.following ? { headers: { 'placement-changes-token': tokenOf(recent.position) } } : {};

/**
 * The name by which the seats of a client are counted. With noauth2 it is the address, since there a client may claim to be any user. With
 * tokens it is the user and the project, since two projects may choose the same user id: all pods in Kubernetes are called `default`.
 * Otherwise it is the user: the ids of Keystone's users are unique.
 */
export function clientOf({ identity, network }: Pick<ApiRequest, 'identity' | 'network'>, { api }: Config): string {
  if (api.authStrategy === 'noauth2') return `the address ${network()}`;
  const user = `user ${identity.userId}`;
  return api.authStrategy === 'tokens' ? `${user} of project ${identity.projectId}` : user;
}

/**
 * The preference `wait` of a request (RFC 7240), in seconds; undefined where the client states none.
 *
 * @throws ApiError 400 if it is no number of seconds in these bounds
 */
export function preferredWait(
  request: Pick<ApiRequest, 'header'>,
  { least, most }: { readonly least: number; readonly most: number },
): number | undefined {
  for (const [preference] of request.header('prefer')?.matchAll(preferences) ?? []) {
    const [name = '', value = ''] = (preference.split(';')[0] ?? '').split('=').map((each) => each.trim());
    if (name.toLowerCase() !== 'wait') continue;
    const text = value.replace(/^"(.*)"$/, '$1');
    const seconds = Number(text);
    if (/^[0-9]{1,9}$/.test(text) && seconds >= least && seconds <= most) return seconds;
    throw badRequest(`Prefer: wait is a number of seconds from ${least} to ${most}. Got: ${value.slice(0, 100)}`);
  }
  return undefined;
}

/** Preferences end with a comma that is not in a quoted text. */
const preferences = /(?:[^",]|"(?:[^"\\]|\\.)*"|")+/g;

/** The time for Last-Modified: the newest of several times, or now where there is none. */
export function newest(timesMs: Iterable<number | undefined>): Date {
  let latest: number | undefined;
  for (const time of timesMs) if (time !== undefined && (latest === undefined || time > latest)) latest = time;
  return latest === undefined ? new Date() : new Date(latest);
}

/** When a provider, trait or class was last written, in milliseconds since 1970. */
export function modifiedAtMs(row: {
  readonly createdAtSeconds: number | undefined;
  readonly updatedAtSeconds: number | undefined;
}): number | undefined {
  const seconds = row.updatedAtSeconds ?? row.createdAtSeconds;
  return seconds === undefined ? undefined : seconds * 1000;
}

/** For endpoints that change a resource with a tag. */
export const takesIfMatch = { ifMatchSince: since.entityTags } as const;

/**
 * Allows the field `etag` in a body, so that a client can send back what it has read. The field is ignored: only
 * If-Match is a condition.
 */
export const echoedTag = { etag: v.optional(text()) };

/** The body of an answer and the tag of what it represents: from 2.1 on in the field `etag` and in the header. */
export function tagged<Body extends object>(
  request: ApiRequest,
  json: Body,
  tag: () => EntityTag,
): Pick<Answer, 'etag'> & { readonly json: Body & { readonly etag?: EntityTag } } {
  if (request.version < since.entityTags) return { json };
  const etag = tag();
  return { json: { ...json, etag }, etag };
}

/** The tag of an answer without a body, from 2.1 on. */
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

/** The length of a page for a request without `limit`. */
export const usualLimit = 1000;

/** The parameters of lists that come in pages. @param maximum the largest `limit` */
export const pageParameters = (maximum: number) => ({
  limit: v.optional(integerParameter(1, maximum)),
  marker: v.optional(text()),
});

/**
 * Refuses a marker that can never have been in the list. Programs other than the API may have stored texts that are no UUIDs,
 * and links to the next page name such texts as well.
 *
 * @param exists whether something has this text for its UUID
 */
export function checkMarker(marker: string | undefined, exists: (marker: string) => boolean): void {
  if (marker === undefined || isUuidLike(marker) || (marker !== '' && exists(marker))) return;
  throw badRequest(`Invalid query string parameters: Expected 'marker' parameter to be a UUID. Got: ${marker}`);
}

/** The JSON of a list, whose name is its path: one page of what was found, and links to the next page if there is more. */
export function pageJson<Item>(
  request: ApiRequest,
  path: `/${string}`,
  found: readonly Item[],
  page: { readonly limit: number; represent(item: Item): object; markerOf(last: Item): string },
): object {
  const items = found.slice(0, page.limit);
  const last = found.length > page.limit ? items.at(-1) : undefined;
  return {
    [path.slice(1)]: items.map((item) => page.represent(item)),
    ...(last === undefined ? {} : { [`${path.slice(1)}_links`]: nextLink(request, path, page.markerOf(last)) }),
  };
}

/** Links to the next page: the same query, beginning behind the last item of this page. */
export function nextLink(request: ApiRequest, path: string, last: string) {
  const query = new URLSearchParams([
    ...request.query().entries.filter(([name]) => name !== 'marker'),
    ['marker', last],
  ] as [string, string][]);
  return [{ rel: 'next', href: `${request.prefix}${path}?${query}` }];
}
