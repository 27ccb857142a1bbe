import { readCandidates } from './candidate_reads.ts';
import type { Query } from './candidates.ts';
import { type Chooser, newest, type Weighted } from './chooser.ts';
import { claim } from './claim_actions.ts';
import { release } from './consumer_actions.ts';
import { isMended } from './mended.ts';
import { claimByQuery, claimTogetherByQuery, type QueryWish } from './placing_actions.ts';
import { setAggregates, setTraits, stock } from './provider_actions.ts';
import { providerReads, readAllocations, readSummaries, readTree } from './read_actions.ts';
import { change, make, remove } from './tree_actions.ts';
import { queriesOfTrees, traitsOfTrees } from './tree_queries.ts';

/** Requests to trees whose providers come, go and move, while consumers are placed in them by query. */
export function treeWork(choose: Chooser): readonly Weighted[] {
  const { arena, notes, random, provider, consumer, tagOf, versionFor, generationOf, owner } = choose;
  const [first = ''] = arena.classes;
  const someQuery = queriesOfTrees(choose);
  const queried = (uuid: string): QueryWish => ({ ...owner(uuid, newest), seconds: undefined, query: someQuery() });
  const nameOf = (uuid: string) => (random.percent(80) ? choose.newName(uuid) : `${provider()} 0`);
  /** Most often one of those that have nothing at first. */
  const comingOrGoing = () => (random.percent(65) ? random.pick(arena.providers.slice(-2)) : provider());
  /** By what was seen last, which may be of different moments. */
  const rootOf = (uuid: string): string => {
    const path = [uuid];
    for (let node = notes.parents.get(uuid); typeof node === 'string' && !path.includes(node); ) {
      path.push(node);
      node = notes.parents.get(node);
    }
    return path.at(-1) ?? uuid;
  };
  /** A consumer that has something, the root of the tree where it has it, and another root. */
  const pair = () => {
    const held = random.pick([...notes.holdings].filter(([, [first]]) => first !== undefined).concat([['', []]]));
    const [neighbour, [at = provider()]] = held;
    const other = random.pick(
      arena.providers
        .map(rootOf)
        .filter((root) => root !== rootOf(at))
        .concat([provider()]),
    );
    return { neighbour: neighbour === '' ? consumer() : neighbour, root: rootOf(at), other };
  };
  const moving = (uuid: string, parent: string | null) =>
    change(random.pick([1037, newest]), uuid, nameOf(uuid), parent);
  const placing = (query: Query, than?: string) => {
    const uuid = random.pick(arena.consumers.filter((each) => each !== than));
    return claimByQuery(random.pick([2004, newest]), { ...owner(uuid, newest), seconds: undefined, query });
  };
  const oneUnit = { suffix: '', resources: { [first]: 1 } };
  let met = pair();
  let gone = provider();
  return [
    [
      8,
      () => readSummaries(newest, arena.providers),
      () => {
        met = pair();
        return moving(met.root, met.other);
      },
      () => placing({ groups: [{ ...oneUnit, inTree: met.other }], apartFrom: [met.neighbour] }, met.neighbour),
    ],
    [
      6,
      () => readSummaries(newest, arena.providers),
      () => {
        gone = random.pick(arena.providers.slice(-2));
        return remove(choose.guarded(), gone);
      },
      () => placing({ groups: [{ ...oneUnit, suffix: random.pick(['', '_A']), inTree: gone }] }),
    ],
    [24, () => claimByQuery(random.pick([2004, newest]), queried(consumer()))],
    [
      6,
      () => {
        const [first, second] = [queried(consumer()), queried(consumer())];
        if (first.uuid === second.uuid) return claimTogetherByQuery(newest, [first]);
        // Otherwise each might have to be placed after the other.
        const { with: _, ...query } = first.query;
        return claimTogetherByQuery(random.pick([2004, newest]), [{ ...first, query }, second]);
      },
    ],
    [
      8,
      () => {
        const allocations = { [provider()]: { [first]: 1 + random.below(2) } };
        const microversion = choose.guarded();
        return claim(microversion, { ...owner(consumer(), microversion), seconds: undefined, allocations });
      },
    ],
    [8, () => release(random.pick([1028, newest]), consumer())],
    [
      14,
      () => {
        const uuid = provider();
        const tag = random.percent(40) ? tagOf(`/resource_providers/${uuid}`) : undefined;
        const parent = random.percent(35) ? null : provider();
        const microversion = tag === undefined ? random.pick([1037, 1039, newest]) : choose.tagged();
        return change(microversion, uuid, nameOf(uuid), parent, tag);
      },
    ],
    [
      8,
      () => {
        const uuid = comingOrGoing();
        const parent = random.pick([null, ...arena.providers.filter((each) => each !== uuid)]);
        return make(random.pick([1014, 1019, 1020, newest]), uuid, nameOf(uuid), random.percent(20) ? null : parent);
      },
    ],
    [
      9,
      () => {
        const uuid = comingOrGoing();
        const tag = random.percent(30) ? tagOf(`/resource_providers/${uuid}`) : undefined;
        return remove(versionFor(tag), uuid, tag);
      },
    ],
    [
      4,
      () => {
        const uuid = provider();
        const tag = tagOf(`/resource_providers/${uuid}/inventories`);
        const inventories = random.percent(30) ? {} : { [random.pick(arena.classes)]: choose.inventory() };
        return stock(versionFor(tag), uuid, generationOf(uuid), inventories, tag);
      },
    ],
    [
      4,
      () => {
        const uuid = provider();
        const traits = traitsOfTrees.filter(() => random.percent(50));
        return setTraits(choose.guarded(), uuid, generationOf(uuid), traits);
      },
    ],
    [
      3,
      () => {
        const uuid = provider();
        const aggregates = arena.aggregates.filter(() => random.percent(50));
        return setAggregates(choose.guarded(), uuid, generationOf(uuid), aggregates);
      },
    ],
    [8, () => readTree(random.pick([1014, 1028, newest]), provider())],
    [8, () => random.pick(providerReads)(random.pick([1028, 1039, newest]), provider())],
    [6, () => readAllocations(random.pick([1028, newest]), consumer())],
    [
      10,
      () => {
        const query = someQuery();
        // Others than this service do not know all of it.
        const { order, with: together, apartFrom, ...known } = query;
        if (random.percent(60)) return readCandidates(random.pick([1036, 1039, newest]), known);
        return readCandidates(newest, isMended.affinityShown ? query : { ...known, ...(order && { order }) });
      },
    ],
    [5, () => readSummaries(newest, arena.providers)],
  ];
}
