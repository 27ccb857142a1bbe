import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import type { ApiRequest } from '../rest/endpoint.ts';
import { badRequest } from '../rest/errors.ts';
import type { Hypervisor } from './hypervisor.ts';
import { since } from './microversions.ts';
import { integerId } from './validation.ts';

type Page = {
  readonly hypervisors: readonly Hypervisor[];
  /** The last hypervisor of a full page: more may follow. */
  readonly next: Hypervisor | undefined;
};

/**
 * Up to `limit` hypervisors that follow the one of the marker, which is a UUID or an integer id.
 *
 * @param asked.limit digits
 * @throws ApiError 400 where the marker names no hypervisor.
 */
export function pageOf(
  hypervisors: readonly Hypervisor[],
  asked: { readonly limit: string | undefined; readonly marker: string | undefined; readonly maxLimit: number },
): Page {
  const size = Math.min(asked.maxLimit, asked.limit === undefined ? asked.maxLimit : Number(asked.limit));
  const start = asked.marker === undefined ? 0 : placeOf(hypervisors, asked.marker) + 1;
  const page = hypervisors.slice(start, start + size);
  return { hypervisors: page, next: page.length === size ? page.at(-1) : undefined };
}

function placeOf(hypervisors: readonly Hypervisor[], marker: string): number {
  const uuid = isUuidLike(marker) ? normalUuid(marker) : undefined;
  const id = uuid === undefined ? integerId(marker) : undefined;
  const place = hypervisors.findIndex(({ root }) => root.uuid === uuid || root.id === id);
  if (place === -1) throw badRequest(`marker [${marker}] not found`);
  return place;
}

/**
 * The link to the page that follows a hypervisor: the same query with another marker, its parameters in the order of
 * their names.
 */
export function nextPage(request: ApiRequest, detailed: boolean, { root }: Hypervisor) {
  const marker = String(request.version >= since.uuids ? root.uuid : root.id);
  const query = new URLSearchParams({ ...Object.fromEntries(request.query().entries), marker });
  query.sort();
  const path = `/compute/v2.1/os-hypervisors${detailed ? '/detail' : ''}`;
  return { rel: 'next', href: `${request.origin}${request.prefix}${path}?${query}` };
}
