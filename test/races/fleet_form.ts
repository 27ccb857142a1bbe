import type { Fleet } from '../../src/fleet/model/fleet.ts';
import type { Names } from '../../src/fleet/model/names.ts';
import type { Postings } from '../../src/fleet/model/postings.ts';
import type { Provider } from '../../src/fleet/model/provider.ts';

/** The whole content of a fleet, in an order that does not depend on its history, for comparison. */
export function formOf(fleet: Fleet) {
  return {
    providers: [...fleet.byId.values()].sort((a, b) => a.id - b.id).map((provider) => formOfProvider(fleet, provider)),
    byId: Array.from(fleet.byId.values(), ({ id }) => [id, fleet.byId.get(id)?.id]).sort(byFirst),
    size: fleet.byId.size,
    byUuid: [...fleet.byUuid].map(([uuid, provider]) => [uuid, provider.id]).sort(byFirst),
    byName: [...fleet.byName].map(([name, provider]) => [name, provider.id]).sort(byFirst),
    roots: ids(fleet.roots).sort((a, b) => a - b),
    withClass: formOfPostings(fleet.withClass),
    withTrait: formOfPostings(fleet.withTrait),
    inAggregate: formOfPostings(fleet.inAggregate),
    traits: formOfNames(fleet.traits),
    classes: formOfNames(fleet.classes),
    limits: fleet.limits,
  };
}

const ids = (providers: Iterable<Provider>): number[] => Array.from(providers, ({ id }) => id);

const formOfProvider = (fleet: Fleet, provider: Provider) => ({
  ...provider,
  slot: undefined,
  rootIndex: fleet.roots[provider.rootIndex]?.id,
  parent: provider.parent?.id,
  root: provider.root.id,
  tree: ids(provider.tree),
});

const formOfPostings = <Key extends string | number>(postings: Postings<Key>) =>
  Array.from(postings.keys(), (key) => [key, ids(postings.of(key)).sort((a, b) => a - b)] as const).sort(byFirst);

const formOfNames = (names: Names) => ({ byId: [...names.byId], byName: [...names.byName] });

const byFirst = (a: readonly unknown[], b: readonly unknown[]): number =>
  typeof a[0] === 'number' ? a[0] - Number(b[0]) : String(a[0]) < String(b[0]) ? -1 : 1;
