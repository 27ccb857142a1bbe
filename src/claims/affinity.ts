import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import type { Provider } from '../fleet/model/provider.ts';
import { ownerOr } from '../placement/consumer.ts';
import { normalUuid } from '../placement/uuid.ts';
import { type AllowedTrees, allowedTreesOf, allTrees, heldTrees } from '../search/anchors.ts';
import type { CandidateRequest } from '../search/request.ts';
import { type Claim, ClaimRefused, type ClaimRights, type ConsumerClaim, type PlacementQuery } from './claim.ts';

/** The trees in which the consumers of a claim, and the consumers that its queries name, have something. */
export type Affinity = {
  /**
   * The trees in which a consumer may be placed, by its index in the claim: the trees of the consumers that `with` names, without
   * the trees of the consumers that `apart_from` names, and without the trees of consumers that name this consumer in `apart_from`.
   */
  allowedTrees(index: number, request: CandidateRequest): AllowedTrees;
  /** Notes that a consumer of the claim is placed by a query. */
  note(index: number, placed: ConsumerClaim, request: CandidateRequest): void;
  /**
   * The ids of the providers by which the allowed trees were found: the providers of the consumers' allocations, and all providers above
   * these. While no such provider gets another parent, the allowed trees stay the same.
   */
  readonly reliedOn: ReadonlySet<number>;
};

/**
 * The consumers that a claim names in `with` or `apart_from` and does not write, in each spelling that the database may have.
 */
export function namedOutside({ consumers, placing = [] }: Claim): readonly string[] {
  if (!consumers.some(namesOthers)) return none;
  const named = new Set<string>();
  const written = new Set(consumers.map(({ uuid }) => normalUuid(uuid)));
  for (const index of placing) {
    const { queries = none } = consumers[index] ?? {};
    for (const uuid of [...namedBy(queries, 'with'), ...namedBy(queries, 'apartFrom')]) {
      if (written.has(normalUuid(uuid))) continue;
      named.add(uuid);
      named.add(normalUuid(uuid));
    }
  }
  return [...named];
}

/** Whether a claim may see a consumer. A consumer that does not exist may be seen. */
export function maySee(rights: ClaimRights | undefined, state: ConsumerState | undefined): boolean {
  if (rights === undefined || state === undefined || (state.id === null && state.allocations.length === 0)) return true;
  return rights.allows(ownerOr(rights.incompleteOwner, state));
}

/** The consumers of a claim whose queries name other consumers, and the named consumers, in the usual spelling. */
export function relatedConsumers({ consumers, placing = [] }: Claim): readonly string[] {
  if (!consumers.some(namesOthers)) return none;
  const related = new Set<string>();
  for (const index of placing) {
    const { uuid = '', queries = none } = consumers[index] ?? {};
    const named = [...namedBy(queries, 'with'), ...namedBy(queries, 'apartFrom')].map(normalUuid);
    if (named.length > 0) for (const each of [normalUuid(uuid), ...named]) related.add(each);
  }
  return [...related];
}

/**
 * Looks up where consumers have something. For a consumer of the claim that was placed already, its new providers count.
 *
 * @param states the consumers of the claim, and the consumers that its queries name, as they are
 * @param isCertain whether the fleet is fresh, so that providers which it lacks do not exist
 */
export function affinityOf(
  fleet: Fleet,
  { consumers, rights }: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  isCertain: boolean,
): Affinity {
  if (!consumers.some(namesOthers)) return noAffinity;
  const indexes = new Map(consumers.map(({ uuid }, index) => [normalUuid(uuid), index]));
  const reliedOn = new Set<number>();
  const treesOfProviders = (providers: readonly Provider[]): ReadonlySet<Provider> => {
    for (const provider of providers) {
      // By the parent and not by the root: if rows of the database form a loop of parents, all providers of the loop are added.
      for (
        let node: Provider | undefined = provider;
        node !== undefined && !reliedOn.has(node.id);
        node = node.parent
      ) {
        reliedOn.add(node.id);
      }
    }
    return heldTrees(fleet, providers);
  };
  /** What consumers of the claim have after it, by their index. */
  const after = new Map<number, ReadonlySet<Provider>>();
  const treesAfter = ({ allocations }: ConsumerClaim): ReadonlySet<Provider> =>
    treesOfProviders([...allocations.keys()].flatMap((uuid) => fleet.byUuid.get(uuid) ?? none));
  for (const [index, consumer] of consumers.entries()) {
    if (consumer.queries === undefined) after.set(index, treesAfter(consumer));
  }
  const treesBefore = (uuid: string): ReadonlySet<Provider> => {
    const state = states.get(uuid);
    const held = maySee(rights, state) ? (state?.allocations ?? none) : none;
    const providers = held.flatMap(({ providerId }) => fleet.byId.get(providerId) ?? none);
    if (providers.length < held.length && !isCertain) throw new ClaimRefused('no candidates', uuid);
    return treesOfProviders(providers);
  };
  const treesOf = (uuid: string, asking: number): Iterable<Provider> => {
    const index = indexes.get(normalUuid(uuid));
    if (index === asking) return treesBefore(consumers[index]?.uuid ?? uuid);
    if (index !== undefined) return after.get(index) ?? none;
    return treesBefore(uuid).union(treesBefore(normalUuid(uuid)));
  };
  /** By the index of a consumer, the trees of the placed consumers that name this consumer in `apart_from`. */
  const avoidedBy = new Map<number, Set<Provider>>();
  return {
    allowedTrees: (index, request) => {
      const { only, not } = allowedTreesOf(request, (uuid) => treesOf(uuid, index));
      return { only, not: not.union(avoidedBy.get(index) ?? new Set()) };
    },
    note: (index, placed, request) => {
      const trees = treesAfter(placed);
      after.set(index, trees);
      for (const uuid of request.apartFrom) {
        const other = indexes.get(normalUuid(uuid));
        if (other === undefined || other === index) continue;
        avoidedBy.set(other, trees.union(avoidedBy.get(other) ?? new Set()));
      }
    },
    reliedOn,
  };
}

const noAffinity: Affinity = { allowedTrees: () => allTrees, note: () => {}, reliedOn: new Set() };

const none: readonly never[] = [];

/** Whether the queries of a consumer name consumers in `with` or `apart_from`. */
export const namesOthers = ({ queries }: Pick<ConsumerClaim, 'queries'>): boolean =>
  queries?.some(({ request }) => request.with.length + request.apartFrom.length > 0) === true;

/** The consumers that some queries name in `with` or `apart_from`. */
export const namedBy = (queries: readonly PlacementQuery[], by: 'with' | 'apartFrom'): readonly string[] => [
  ...new Set(queries.flatMap(({ request }) => request[by])),
];
