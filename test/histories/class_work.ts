import type { Action } from './action.ts';
import { readCandidates } from './candidate_reads.ts';
import { type Chooser, newest, type Weighted } from './chooser.ts';
import { claim, claimTogether, reshape } from './claim_actions.ts';
import type { NewInventories, Wish } from './claim_rules.ts';
import { ensureClass, removeClass, renameClass } from './class_actions.ts';
import { release } from './consumer_actions.ts';
import { claimByQuery } from './placing_actions.ts';
import { removeOne, stock, stockAnother, stockOne } from './provider_actions.ts';
import {
  providerReads,
  readAllocations,
  readClass,
  readInventories,
  readProjectUsages,
  readSummaries,
} from './read_actions.ts';
import type { Amounts, Inventory } from './state.ts';
import { change } from './tree_actions.ts';

/** Requests to inventories and allocations of classes that get other names, are deleted and made again; and the reshaper. */
export function classWork(choose: Chooser): readonly Weighted[] {
  const { arena, notes, random, provider, consumer, tagOf, versionFor, generationOf, owner, inventory } = choose;
  const [first = '', second = '', third = ''] = arena.classes;
  const name = () => random.pick(arena.classes);
  const anyName = () => random.pick([...arena.classes, 'VCPU']);
  const amounts = (): Amounts => ({ [anyName()]: 1 + random.below(2), ...(random.percent(30) ? { [name()]: 1 } : {}) });
  /** With a class that only this arena has. */
  const ownAmounts = (): Amounts => ({ [name()]: 1 + random.below(2), ...(random.percent(30) ? { VCPU: 1 } : {}) });
  const wish = (uuid: string, microversion: number): Wish => ({
    ...owner(uuid, microversion),
    seconds: undefined,
    allocations: { [provider()]: amounts() },
  });
  const inventories = (): Readonly<Record<string, Inventory>> =>
    Object.fromEntries([...arena.classes, 'VCPU'].filter(() => random.percent(55)).map((each) => [each, inventory()]));
  const ofOne = (part: string) => {
    const uuid = provider();
    const tag = tagOf(`/resource_providers/${uuid}/inventories${part}`);
    return { uuid, tag, microversion: versionFor(tag) };
  };
  /** @param isSeen whether the tags that were seen last are sent */
  const reshaping = (isSeen: boolean): Action => {
    const uuids = arena.providers.filter(() => random.percent(50));
    const reshaped = (uuids.length > 0 ? uuids : [provider()]).map(
      (uuid): NewInventories => ({ uuid, generation: generationOf(uuid), inventories: inventories() }),
    );
    const isOwn = isSeen || random.percent(60);
    const moved = random.percent(60) ? [wish(consumer(), isOwn ? newest : 1030)] : [];
    const seen = [
      ...reshaped.map(({ uuid }) => `/resource_providers/${uuid}/inventories`),
      ...moved.flatMap(({ uuid, generation }) => (generation === null ? [] : [`/allocations/${uuid}`])),
    ].map((path) => (isSeen ? notes.tags.get(path) : undefined));
    const tag = seen.includes(undefined) ? undefined : seen.join(', ');
    return reshape(isOwn ? choose.tagged() : random.pick([1030, 1036, 1038]), reshaped, moved, isOwn ? tag : undefined);
  };
  const renaming = () => renameClass(name(), name());
  return [
    [10, renaming],
    [6, () => readSummaries(newest, arena.providers), renaming, () => reshaping(false)],
    [
      4,
      () => readSummaries(newest, arena.providers),
      // Two of them get each other's names.
      () => renameClass(first, third),
      () => renameClass(second, first),
      () => renameClass(third, second),
      () => reshaping(false),
    ],
    [3, () => readInventories(newest, provider()), renaming, () => reshaping(true)],
    [3, () => ensureClass(random.pick([1007, 1028, newest]), name())],
    [3, () => removeClass(random.pick([1028, newest]), name())],
    [8, () => reshaping(random.percent(50))],
    [
      12,
      () => {
        const microversion = choose.guarded();
        return claim(microversion, wish(consumer(), microversion));
      },
    ],
    [
      5,
      () => {
        const [first, second] = [consumer(), consumer()];
        const microversion = choose.guarded();
        return claimTogether(microversion, [
          wish(first, microversion),
          ...(first === second ? [] : [wish(second, microversion)]),
        ]);
      },
    ],
    [
      8,
      () => {
        const query = { groups: [{ suffix: '', resources: ownAmounts() }] };
        return claimByQuery(random.pick([2004, newest]), { ...owner(consumer(), newest), seconds: undefined, query });
      },
    ],
    [6, () => release(random.pick([1028, newest]), consumer())],
    [
      6,
      () => {
        const { uuid, tag, microversion } = ofOne('');
        return stock(microversion, uuid, generationOf(uuid), inventories(), tag);
      },
    ],
    [
      4,
      () => {
        const { uuid, tag, microversion } = ofOne('');
        return stockAnother(microversion, uuid, anyName(), inventory(), tag);
      },
    ],
    [
      4,
      () => {
        const each = anyName();
        const { uuid, tag, microversion } = ofOne(`/${each}`);
        return random.percent(50)
          ? stockOne(microversion, uuid, generationOf(uuid), each, inventory(), tag)
          : removeOne(microversion, uuid, each, tag);
      },
    ],
    [
      2,
      () =>
        change(newest, arena.providers[2] ?? provider(), choose.newName(provider()), random.pick([null, provider()])),
    ],
    [14, () => random.pick(providerReads)(random.pick([1028, 1039, newest, newest]), provider())],
    [6, () => readAllocations(random.pick([1028, newest, newest]), consumer())],
    [3, () => readClass(random.pick([1007, newest]), name())],
    [3, () => readProjectUsages(random.pick([1009, 1037]), random.pick(arena.projects))],
    [5, () => readCandidates(random.pick([1036, newest]), { groups: [{ suffix: '', resources: ownAmounts() }] })],
    [5, () => readSummaries(newest, arena.providers)],
  ];
}
