import type { Fleet } from '../fleet/model/fleet.ts';
import type { Provider } from '../fleet/model/provider.ts';
import type { CandidateRequest } from './request.ts';
import { sharingIn } from './sharing.ts';

/** The trees in which a search may look for candidates, by their roots. */
export type AllowedTrees = {
  /** Only these trees; undefined for all. */
  readonly only: ReadonlySet<Provider> | undefined;
  /** None of these trees, also if `only` has them. */
  readonly not: ReadonlySet<Provider>;
};

/** For a request without `with` and `apart_from`. */
export const allTrees: AllowedTrees = { only: undefined, not: new Set() };

/**
 * The trees that a request allows by `with` and `apart_from` (microversion 1.43).
 *
 * @param treesOf returns the roots of the trees in which a consumer holds something; its argument is the UUID as the
 *   client spells it
 */
export function allowedTreesOf(
  request: Pick<CandidateRequest, 'with' | 'apartFrom'>,
  treesOf: (consumer: string) => Iterable<Provider>,
): AllowedTrees {
  const together = request.with;
  return {
    only: together.length === 0 ? undefined : new Set(together.flatMap((consumer) => [...treesOf(consumer)])),
    not: new Set(request.apartFrom.flatMap((consumer) => [...treesOf(consumer)])),
  };
}

/**
 * The roots of the trees in which a consumer holds something. A provider that shares does not count, unless the consumer
 * holds something of such providers only.
 *
 * @param providers of which it holds something
 */
export function heldTrees(fleet: Fleet, providers: Iterable<Provider>): ReadonlySet<Provider> {
  const held = [...providers];
  if (held.length < 2) return new Set(held.map(({ root }) => root));
  const sharing = sharingIn(fleet);
  const own = held.filter((provider) => !sharing.isSharing(provider));
  return new Set((own.length > 0 ? own : held).map(({ root }) => root));
}
