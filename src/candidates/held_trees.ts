import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import { sharingIn } from './sharing.ts';

/**
 * The roots of the trees in which a consumer holds something. What it holds of a provider that shares does not count where it also
 * holds something in another tree.
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
