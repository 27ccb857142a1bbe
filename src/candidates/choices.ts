import { hasRequiredTraits } from '../fleet/filters.ts';
import type { Provider } from '../fleet/provider.ts';
import { type Order, walk } from './anchors.ts';
import type { Choice } from './candidate.ts';
import { optionsByClass, satisfiesGroup } from './options.ts';
import type { ResolvedGroup } from './resolve.ts';

/**
 * What one group by itself may be satisfied with at an anchor.
 *
 * @param usable the sharing providers of other trees that this one may use
 */
export function* choicesFor(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: Order,
): Generator<Choice> {
  if (group.granular) {
    for (const providers of [anchor.tree, usable]) {
      for (const provider of walk(providers, order)) {
        if (satisfiesGroup(provider, group)) yield { group, providers: [provider] };
      }
    }
    return;
  }
  const options = optionsByClass(anchor, usable, group);
  if (options === undefined) return;
  for (const providers of product(options, order)) {
    const { required } = group.traits;
    if (required.length > 0) {
      const together = providers.length === 1 ? providers[0]?.traitIds : providers.flatMap(({ traitIds }) => traitIds);
      if (!hasRequiredTraits(together ?? [], required)) continue;
    }
    yield { group, providers };
  }
}

function* product<Item>(lists: readonly (readonly Item[])[], order: Order): Generator<readonly Item[]> {
  const chosen: Item[] = [];
  const extend = function* (place: number): Generator<readonly Item[]> {
    const list = lists[place];
    if (list === undefined) {
      yield [...chosen];
      return;
    }
    for (const item of walk(list, order)) {
      chosen.push(item);
      yield* extend(place + 1);
      chosen.pop();
    }
  };
  yield* extend(0);
}
