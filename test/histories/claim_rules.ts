import { errorOf, isLostRace, isOldGeneration } from './action.ts';
import { isUpToDate, newShift, withoutConsumer } from './consumer_generations.ts';
import type { Reply } from './history.ts';
import {
  type Amounts,
  type ConsumerState,
  capacityOf,
  exceedsLimit,
  type Inventory,
  isClass,
  providerOf,
  type State,
  tags,
  usedOf,
  withConsumer,
  withProvider,
} from './state.ts';
import { type EffectTime, termFrom, terms } from './terms.ts';

/*
 * When a claim is written, and what it changes: of one consumer or several, and of inventories with the reshaper.
 */

export type Allocations = Readonly<Record<string, Amounts>>;

/** What a consumer should have. */
export type Wish = {
  readonly uuid: string;
  readonly allocations: Allocations;
  readonly project: string;
  readonly user: string;
  /** Sent from 1.38 on. */
  readonly type: string;
  /** Sent from 1.28 on. */
  readonly generation: number | null;
  /** The length of its term, sent from 2.6 on. Undefined for a lasting consumer. */
  readonly seconds: number | undefined;
  /** Sent from 2.9 on. Null removes the name; without it the name stays. */
  readonly name?: string | null | undefined;
};

/** The inventories that a provider should have instead of its present ones. */
export type NewInventories = {
  readonly uuid: string;
  readonly generation: number;
  readonly inventories: Readonly<Record<string, Inventory>>;
};

/** A request that writes allocations. */
export type Claim = {
  readonly microversion: number;
  readonly wishes: readonly Wish[];
  readonly ifMatch?: string | undefined;
  /** Whether If-Match is not compared with consumers that the client takes for new. */
  readonly expectsKnownOnly?: boolean;
  /** Only of the reshaper, with which consumers keep their terms. */
  readonly inventories?: readonly NewInventories[];
};

/** Whether If-Match has a tag. Undefined, of what does not exist, is in none. */
export const isMatch = (ifMatch: string | undefined, tag: string | undefined): boolean =>
  ifMatch === undefined || (tag !== undefined && ifMatch.includes(tag));

/** Whether an error says that a provider or a class of the request does not exist. */
export const isUnknown = (reply: Reply): boolean =>
  reply.status === 400 && /does not exist|No such resource class|No resource provider/.test(errorOf(reply).detail);

/** The states after a claim that was answered so. */
export function claimed(
  state: State,
  reply: Reply | undefined,
  effectTime: EffectTime,
  claim: Claim,
): readonly State[] {
  if (reply !== undefined && isLostRace(reply)) return [state];
  const refusals = refusalsOf(state, claim);
  if (refusals.length > 0) return reply !== undefined && refusals.some((isRight) => isRight(reply)) ? [state] : [];
  if (reply !== undefined && reply.status !== 204) return [];
  return [written(state, effectTime, claim)];
}

type Refusal = (reply: Reply) => boolean;

/** In which ways a claim may be refused in this state; in none where it is written. */
export function refusalsOf(state: State, claim: Claim): readonly Refusal[] {
  const { wishes, inventories = [] } = claim;
  const before = refusalsBeforeRoom(state, claim);
  if (before.length > 0) return before;
  if (claim.inventories === undefined && exceedsLimit(state, withAllocations(state, wishesAt(state, claim))))
    return [isOverLimit];
  const reshaped = inventories.reduce((rest, { uuid, ...each }) => withProvider(rest, uuid, each), state);
  const refusals: Refusal[] = [];
  if (!hasRoom(reshaped, wishes)) refusals.push(isNoRoom);
  if (inventories.length > 0 && leavesUsageBehind(reshaped, wishes)) refusals.push(isInUse);
  return refusals;
}

/** Below 1.38 a consumer keeps its type. */
export const wishesAt = (
  state: State,
  { microversion, wishes }: Pick<Claim, 'microversion' | 'wishes'>,
): readonly Wish[] =>
  microversion >= 1038
    ? wishes
    : wishes.map((wish) => ({ ...wish, type: state.consumers[wish.uuid]?.type ?? 'unknown' }));

/** Whether a 403 says that a limit is exceeded. */
export const isOverLimit: Refusal = (reply) => reply.status === 403 && errorOf(reply).detail.includes('is limited to');
const isNoRoom: Refusal = (reply) => reply.status === 409 && errorOf(reply).detail.includes('Unable to');
/** Whether a 409 says that an inventory which should go is in use. */
export const isInUse: Refusal = (reply) => reply.status === 409 && errorOf(reply).detail.includes('in use');

/** The refusals for which it does not matter how much is free. */
export function refusalsBeforeRoom(
  state: State,
  { microversion, wishes, ifMatch, expectsKnownOnly = false, inventories = [] }: Claim,
): readonly Refusal[] {
  const providers = [
    ...inventories.map(({ uuid }) => uuid),
    ...wishes.flatMap(({ allocations }) => Object.keys(allocations)),
  ];
  const classes = [
    ...inventories.flatMap((each) => Object.keys(each.inventories)),
    ...wishes.flatMap(({ allocations }) => Object.values(allocations).flatMap((amounts) => Object.keys(amounts))),
  ];
  const refusals: Refusal[] = [];
  if (providers.some((uuid) => state.providers[uuid] === undefined) || classes.some((name) => !isClass(state, name))) {
    refusals.push(isUnknown);
  }
  const compared = wishes.filter(({ generation }) => !expectsKnownOnly || generation !== null);
  const unmatched =
    compared.some(({ uuid }) => {
      const consumer = state.consumers[uuid];
      return !isMatch(ifMatch, consumer && tags.consumer(consumer));
    }) ||
    inventories.some(({ uuid }) => {
      const provider = state.providers[uuid];
      return provider !== undefined && !isMatch(ifMatch, tags.inventories(provider));
    }) ||
    (ifMatch !== undefined && compared.length + inventories.length === 0);
  const isOld =
    inventories.some(({ uuid, generation }) => (state.providers[uuid]?.generation ?? generation) !== generation) ||
    (microversion >= 1028 && !wishes.every((wish) => isUpToDate(state, wish, microversion)));
  if (unmatched) refusals.push(({ status }) => status === 412);
  else if (isOld) refusals.push(isOldGeneration);
  return refusals;
}

/** The same state without some consumers. */
export const withoutConsumers = (state: State, wishes: readonly Pick<Wish, 'uuid'>[]): State =>
  wishes.reduce((rest, { uuid }) => withConsumer(rest, uuid, undefined), state);

/** What the consumers of a claim have already is free for it. More than the capacity stays, if it does not grow. */
export function hasRoom(state: State, wishes: readonly Wish[]): boolean {
  const without = withoutConsumers(state, wishes);
  const wanted = new Map<string, number>();
  for (const { allocations } of wishes) {
    for (const [provider, amounts] of Object.entries(allocations)) {
      for (const [name, amount] of Object.entries(amounts)) {
        const inventory = providerOf(state, provider).inventories[name];
        if (inventory === undefined) return false;
        const { min_unit, max_unit, step_size } = inventory;
        if (amount < min_unit || amount > max_unit || amount % step_size !== 0) return false;
        const slot = `${provider} ${name}`;
        wanted.set(slot, (wanted.get(slot) ?? 0) + amount);
        const before = usedOf(state, provider, name);
        const after = usedOf(without, provider, name) + (wanted.get(slot) ?? 0);
        if (after > capacityOf(inventory) && !(before > 0 && after <= before)) return false;
      }
    }
  }
  return true;
}

/** Whether something would be used of which there is no inventory. */
function leavesUsageBehind(reshaped: State, wishes: readonly Wish[]): boolean {
  const after = withAllocations(reshaped, wishes);
  return Object.values(after.consumers).some(({ allocations }) =>
    Object.entries(allocations).some(([provider, amounts]) =>
      Object.keys(amounts).some((name) => providerOf(after, provider).inventories[name] === undefined),
    ),
  );
}

/** A consumer with some allocations, for what only depends on these. */
export const holderOf = (
  { project, user, type }: Pick<Wish, 'project' | 'user' | 'type'>,
  allocations: Allocations,
): ConsumerState => ({ generation: 0, shift: 0, project, user, type, allocations, term: undefined });

export const withAllocations = (state: State, wishes: readonly Wish[]): State =>
  wishes.reduce(
    (rest, wish) =>
      withConsumer(
        rest,
        wish.uuid,
        Object.keys(wish.allocations).length === 0 ? undefined : holderOf(wish, wish.allocations),
      ),
    state,
  );

/** The state after a claim that is not refused. */
export function written(state: State, effectTime: EffectTime, { microversion, wishes, inventories }: Claim): State {
  /** By how much the generations of providers are raised. */
  const raises = new Map<string, number>();
  const raise = (uuid: string, by: number) => raises.set(uuid, (raises.get(uuid) ?? 0) + by);
  const changed = new Set<string>();
  let next = state;
  for (const wish of wishes) {
    const { uuid, allocations, project, user, type } = wish;
    const consumer = state.consumers[uuid];
    const isEmpty = Object.keys(allocations).length === 0;
    for (const provider of Object.keys(isEmpty ? (consumer?.allocations ?? {}) : allocations)) changed.add(provider);
    const record: ConsumerState = {
      generation: (consumer?.generation ?? 0) + 1,
      shift: consumer === undefined ? newShift() : consumer.shift,
      project,
      user,
      type: microversion >= 1038 ? type : (consumer?.type ?? 'unknown'),
      allocations,
      term: inventories === undefined ? termOf(wish, microversion, effectTime) : consumer?.term,
      name: nameAfter(wish, microversion, consumer),
    };
    next = isEmpty ? withoutConsumer(next, uuid) : withConsumer(next, uuid, record);
  }
  for (const uuid of changed) raise(uuid, 1);
  for (const { uuid, inventories: wanted } of inventories ?? []) {
    raise(uuid, Object.keys(wanted).length > 0 ? 2 : 1);
    next = withProvider(next, uuid, { inventories: wanted });
  }
  for (const [uuid, by] of raises)
    next = withProvider(next, uuid, { generation: providerOf(next, uuid).generation + by });
  return next;
}

/** From this microversion on consumers have names. */
export const names = 2009;

/** The name of a consumer after a write. */
export const nameAfter = (
  { name }: Pick<Wish, 'name'>,
  microversion: number,
  before: ConsumerState | undefined,
): string | undefined => (microversion < names || name === undefined ? before?.name : (name ?? undefined));

const termOf = ({ seconds }: Wish, microversion: number, effectTime: EffectTime): ConsumerState['term'] =>
  microversion >= terms && seconds !== undefined ? termFrom(effectTime, seconds) : undefined;
