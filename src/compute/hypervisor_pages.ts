import type { ApiRequest } from '../api/endpoint.ts';
import { badRequest } from '../errors.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import type { Hypervisor } from './hypervisor.ts';
import { since } from './microversions.ts';
import { integerId } from './validation.ts';

type Page = {
  readonly hypervisors: readonly Hypervisor[];
  /** The last of a page that is full, behind which there may be more. */
  readonly next: Hypervisor | undefined;
};

/**
 * Up to `limit` hypervisors behind the one that the marker names, by its UUID or its integer id.
 *
 * @param asked.limit digits
 * @throws ApiError 400 where there is none of that name.
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

/** The link to what comes behind a hypervisor: the same query with another marker, its parameters in the order of names. */
export function nextPage(request: ApiRequest, detailed: boolean, { root }: Hypervisor) {
  const marker = String(request.version >= since.uuids ? root.uuid : root.id);
  const query = new URLSearchParams({ ...Object.fromEntries(request.query().entries), marker });
  query.sort();
  const path = `/compute/v2.1/os-hypervisors${detailed ? '/detail' : ''}`;
  return { rel: 'next', href: `${request.origin}${request.prefix}${path}?${query}` };
}
