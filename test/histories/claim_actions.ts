import { type Action, errorOf, isLostRace, isOldGeneration } from './action.ts';
import type { Reply } from './history.ts';
import {
  type Amounts,
  type ConsumerState,
  capacityOf,
  providerOf,
  type State,
  shows,
  sortedJson,
  tags,
  usedOf,
  withConsumer,
  withProvider,
} from './state.ts';
import { isFound, isNotFound, type Moment, termFrom, terms, withShownEnd } from './terms.ts';

type Allocations = Readonly<Record<string, Amounts>>;

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
  /** The length of its term, sent from 1.45 on. Undefined for a lasting consumer. */
  readonly seconds: number | undefined;
};

const resourcesOf = (allocations: Allocations) =>
  Object.fromEntries(Object.entries(allocations).map(([uuid, resources]) => [uuid, { resources }]));

const ownerFields = ({ project, user, type, generation, seconds }: Wish, minor: number) => ({
  project_id: project,
  user_id: user,
  ...(minor >= 28 ? { consumer_generation: generation } : {}),
  ...(minor >= 38 ? { consumer_type: type } : {}),
  ...(minor >= terms && seconds !== undefined ? { expires_in: seconds } : {}),
});

const bodyOf = (wish: Wish, minor: number) => ({
  allocations: resourcesOf(wish.allocations),
  ...ownerFields(wish, minor),
});

/** PUT /allocations/{consumer}. */
export const claim = (minor: number, wish: Wish, ifMatch?: string): Action => ({
  method: 'PUT',
  path: `/allocations/${wish.uuid}`,
  minor,
  ifMatch,
  body: bodyOf(wish, minor),
  after: (state, reply, moment) => claimed(state, reply, moment, minor, [wish], ifMatch),
});

/** POST /allocations for several consumers. */
export const claimTogether = (minor: number, wishes: readonly Wish[]): Action => ({
  method: 'POST',
  path: '/allocations',
  minor,
  body: Object.fromEntries(wishes.map((wish) => [wish.uuid, bodyOf(wish, minor)])),
  after: (state, reply, moment) => claimed(state, reply, moment, minor, wishes),
});

/** PUT /allocations/{consumer} by a query: some amounts of one provider of an aggregate. */
export function claimByQuery(
  minor: number,
  wish: Omit<Wish, 'allocations'>,
  resources: Amounts,
  aggregate: string,
): Action {
  const asked = Object.entries(resources).map(([name, amount]) => `${name}:${amount}`);
  const whole = { ...wish, allocations: {} };
  return {
    method: 'PUT',
    path: `/allocations/${wish.uuid}`,
    minor,
    body: { candidates: `resources=${asked}&member_of=${aggregate}`, ...ownerFields(whole, minor) },
    after: (state, reply, moment) => {
      const hosts = Object.keys(state.providers);
      const fits = hosts.filter((host) => {
        const placed = { ...whole, allocations: { [host]: resources } };
        return providerOf(state, host).aggregates.includes(aggregate) && hasRoom(state, [placed]);
      });
      if (reply?.status === 409 && errorOf(reply).code === 'placement.no_candidates') {
        return fits.length === 0 && isUpToDate(state, whole) ? [state] : [];
      }
      if (reply !== undefined && reply.status !== 200) return claimed(state, reply, moment, minor, [whole]);
      const chosen = reply === undefined ? undefined : hostsIn(reply);
      return fits.flatMap((host) => {
        const placed = { ...whole, allocations: { [host]: resources } };
        if (chosen !== undefined && chosen !== sortedJson(placed.allocations)) return [];
        const after = claimed(state, reply && { ...reply, status: 204 }, moment, minor, [placed]);
        return reply === undefined || minor < terms ? after : withEnd(after, wish.uuid, reply.body);
      });
    },
  };
}

/**
 * What a claim by query got. The generations of its providers are left out: they are those after all claims that were
 * written by one statement.
 */
function hostsIn({ body }: Reply): string {
  const { allocations } = body as { readonly allocations?: Readonly<Record<string, { readonly resources: Amounts }>> };
  const amounts = Object.entries(allocations ?? {}).map(([uuid, { resources }]) => [uuid, resources]);
  return sortedJson(Object.fromEntries(amounts));
}

/** DELETE /allocations/{consumer}. */
export const release = (minor: number, uuid: string): Action => ({
  method: 'DELETE',
  path: `/allocations/${uuid}`,
  minor,
  after: (state, reply) => {
    const exists = state.consumers[uuid] !== undefined;
    if (reply !== undefined && reply.status !== (exists ? 204 : 404)) return isLostRace(reply) ? [state] : [];
    return exists || reply !== undefined ? [withConsumer(state, uuid, undefined)] : [];
  },
});

/** PUT /consumers/{consumer}: another owner. */
export const giveTo = (minor: number, wish: Omit<Wish, 'allocations'>): Action => ({
  method: 'PUT',
  path: `/consumers/${wish.uuid}`,
  minor,
  body: {
    project_id: wish.project,
    user_id: wish.user,
    consumer_type: wish.type,
    consumer_generation: wish.generation,
  },
  after: (state, reply, moment) => {
    const consumer = state.consumers[wish.uuid];
    if (reply !== undefined && isLostRace(reply)) return [state];
    if (reply?.status === 404) return isNotFound(consumer, minor, moment) ? [state] : [];
    if (consumer === undefined || !isFound(consumer, minor, moment)) return [];
    if (consumer.generation !== wish.generation) return reply !== undefined && isOldGeneration(reply) ? [state] : [];
    const { project, user, type } = wish;
    const next = { ...consumer, project, user, type, generation: consumer.generation + 1 };
    if (reply !== undefined && !(reply.status === 200 && reply.etag === tags.consumer(next))) return [];
    const after = [withConsumer(state, wish.uuid, next)];
    return reply === undefined || minor < terms ? after : withEnd(after, wish.uuid, reply.body);
  },
});

/** PUT /consumers/{consumer}/term. @param seconds null makes the consumer lasting */
export const setTerm = (minor: number, uuid: string, generation: number | null, seconds: number | null): Action => ({
  method: 'PUT',
  path: `/consumers/${uuid}/term`,
  minor,
  body: { expires_in: seconds, consumer_generation: generation },
  after: (state, reply, moment) => {
    const consumer = state.consumers[uuid];
    if (reply?.status === 404) return isNotFound(consumer, minor, moment) ? [state] : [];
    if (consumer === undefined || !isFound(consumer, minor, moment)) return [];
    if (consumer.generation !== generation) return reply !== undefined && isOldGeneration(reply) ? [state] : [];
    const term = seconds === null ? undefined : termFrom(moment, seconds);
    const after = [withConsumer(state, uuid, { ...consumer, term })];
    if (reply === undefined) return after;
    const isRight = reply.status === 200 && shows(reply.body, { consumer_generation: generation });
    return isRight ? withEnd(after, uuid, reply.body) : [];
  },
});

/** The states in which the end of a term is what an answer shows. */
const withEnd = (states: readonly State[], uuid: string, answer: unknown): readonly State[] =>
  states.flatMap((state) => withShownEnd(state, uuid, answer) ?? []);

const isUpToDate = (state: State, { uuid, generation }: Wish): boolean =>
  (state.consumers[uuid]?.generation ?? null) === generation;

function claimed(
  state: State,
  reply: Reply | undefined,
  moment: Moment,
  minor: number,
  wishes: readonly Wish[],
  ifMatch?: string,
): readonly State[] {
  if (reply !== undefined && isLostRace(reply)) return [state];
  const refusal = refusalOf(state, minor, wishes, ifMatch);
  if (refusal !== undefined) return reply !== undefined && refusal(reply) ? [state] : [];
  if (reply !== undefined && reply.status !== 204) return [];
  return [written(state, moment, minor, wishes)];
}

/** How a claim is refused in this state. Undefined if it is not. */
function refusalOf(
  state: State,
  minor: number,
  wishes: readonly Wish[],
  ifMatch: string | undefined,
): ((reply: Reply) => boolean) | undefined {
  for (const { uuid } of wishes) {
    const consumer = state.consumers[uuid];
    const isMatch = consumer !== undefined && tags.consumer(consumer) === ifMatch;
    if (ifMatch !== undefined && !isMatch) return ({ status }) => status === 412;
  }
  if (minor >= 28 && !wishes.every((wish) => isUpToDate(state, wish))) return isOldGeneration;
  if (hasRoom(state, wishes)) return undefined;
  return (reply) => reply.status === 409 && errorOf(reply).detail.includes('Unable to');
}

/** What the consumers of a claim have already is free for it. More than the capacity stays, if it does not grow. */
function hasRoom(state: State, wishes: readonly Wish[]): boolean {
  const without = wishes.reduce((rest, { uuid }) => withConsumer(rest, uuid, undefined), state);
  const wanted = new Map<string, number>();
  for (const { allocations } of wishes) {
    for (const [provider, amounts] of Object.entries(allocations)) {
      for (const [name, amount] of Object.entries(amounts)) {
        const inventory = providerOf(state, provider).inventories[name];
        if (inventory === undefined) return false;
        if (amount < inventory.min_unit || amount > inventory.max_unit || amount % inventory.step_size !== 0)
          return false;
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

function written(state: State, moment: Moment, minor: number, wishes: readonly Wish[]): State {
  const changed = new Set<string>();
  let next = state;
  for (const { uuid, allocations, project, user, type, seconds } of wishes) {
    const consumer = state.consumers[uuid];
    const isEmpty = Object.keys(allocations).length === 0;
    for (const provider of Object.keys(isEmpty ? (consumer?.allocations ?? {}) : allocations)) changed.add(provider);
    const written: ConsumerState = {
      generation: (consumer?.generation ?? 0) + 1,
      project,
      user,
      type: minor >= 38 ? type : (consumer?.type ?? 'unknown'),
      allocations,
      term: minor >= terms && seconds !== undefined ? termFrom(moment, seconds) : undefined,
    };
    next = withConsumer(next, uuid, isEmpty ? undefined : written);
  }
  for (const uuid of changed) next = withProvider(next, uuid, { generation: providerOf(next, uuid).generation + 1 });
  return next;
}
