import { hasRequiredTraits } from '../fleet/filters.ts';
import type { Provider } from '../fleet/provider.ts';
import type { Choice } from './candidate.ts';
import { optionsByClass, satisfiesAlone, satisfiesGroup } from './options.ts';
import { inOrder, type Order } from './order.ts';
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
    yield* granularChoices(group, anchor, usable, order);
    return;
  }
  if (isAlone(anchor, usable)) {
    const choice = choiceAlone(group, anchor);
    if (choice !== undefined) yield choice;
    return;
  }
  const { required } = group.traits;
  const options = optionsByClass(anchor, usable, group);
  if (options === undefined) return;
  for (const providers of product(options, order)) {
    if (required.length > 0) {
      const together = providers.length === 1 ? providers[0]?.traitIds : providers.flatMap(({ traitIds }) => traitIds);
      if (!hasRequiredTraits(together ?? [], required)) continue;
    }
    yield { group, providers };
  }
}

/** The choices of a granular group, each a provider by itself; those of the tree come before those that share with it. */
export function granularChoices(
  group: ResolvedGroup,
  anchor: Provider,
  usable: readonly Provider[],
  order: Order,
): readonly Choice[] {
  const choices = (providers: readonly Provider[]): Choice[] => {
    const found: Choice[] = [];
    for (const provider of providers) {
      if (satisfiesGroup(provider, group)) found.push({ group, providers: [provider] });
    }
    return found;
  };
  const own = inOrder(choices(anchor.tree), order);
  return usable.length === 0 ? own : [...own, ...inOrder(choices(usable), order)];
}

/** All ways to take one of each list, of which none is empty; the last list turns fastest. */
function* product<Item>(lists: readonly (readonly Item[])[], order: Order): Generator<readonly Item[]> {
  const wheels = order === 'steady' ? lists : lists.map((list) => inOrder(list, order));
  const turned = wheels.map(() => 0);
  for (;;) {
    const taken: Item[] = [];
    for (const [place, wheel] of wheels.entries()) {
      const item = wheel[turned[place] ?? 0];
      if (item !== undefined) taken.push(item);
    }
    yield taken;
    let place = wheels.length - 1;
    for (; place >= 0; place--) {
      const next = (turned[place] ?? 0) + 1;
      turned[place] = next < (wheels[place]?.length ?? 0) ? next : 0;
      if (turned[place] !== 0) break;
    }
    if (place < 0) return;
  }
}

/** Whether a group without suffix has one choice at most at an anchor: a flat host, the most common case by far. */
export const isAlone = (anchor: Provider, usable: readonly Provider[]): boolean =>
  anchor.tree.length === 1 && usable.length === 0;

/** What a group without suffix takes of a flat host: all, or nothing. */
export const choiceAlone = (group: ResolvedGroup, anchor: Provider): Choice | undefined =>
  group.resources.length > 0 && satisfiesAlone(anchor, group)
    ? { group, providers: group.resources.map(() => anchor) }
    : undefined;
