import { type Action, errorOf, isLostRace, isOldGeneration } from './action.ts';
import type { Reply } from './history.ts';
import {
  type Amounts,
  type ConsumerState,
  capacityOf,
  providerOf,
  type State,
  sortedJson,
  tags,
  usedOf,
  withConsumer,
  withProvider,
} from './state.ts';

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
};

const resourcesOf = (allocations: Allocations) =>
  Object.fromEntries(Object.entries(allocations).map(([uuid, resources]) => [uuid, { resources }]));

const ownerFields = ({ project, user, type, generation }: Wish, minor: number) => ({
  project_id: project,
  user_id: user,
  ...(minor >= 28 ? { consumer_generation: generation } : {}),
  ...(minor >= 38 ? { consumer_type: type } : {}),
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
  after: (state, reply) => claimed(state, reply, minor, [wish], ifMatch),
});

/** POST /allocations for several consumers. */
export const claimTogether = (minor: number, wishes: readonly Wish[]): Action => ({
  method: 'POST',
  path: '/allocations',
  minor,
  body: Object.fromEntries(wishes.map((wish) => [wish.uuid, bodyOf(wish, minor)])),
  after: (state, reply) => claimed(state, reply, minor, wishes),
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
    after: (state, reply) => {
      const hosts = Object.keys(state.providers);
      const fits = hosts.filter((host) => {
        const placed = { ...whole, allocations: { [host]: resources } };
        return providerOf(state, host).aggregates.includes(aggregate) && hasRoom(state, [placed]);
      });
      if (reply?.status === 409 && errorOf(reply).code === 'placement.no_candidates') {
        return fits.length === 0 && isUpToDate(state, whole) ? [state] : [];
      }
      if (reply !== undefined && reply.status !== 200) return claimed(state, reply, minor, [whole]);
      const chosen = reply === undefined ? undefined : hostsIn(reply);
      return fits.flatMap((host) => {
        const placed = { ...whole, allocations: { [host]: resources } };
        if (chosen !== undefined && chosen !== sortedJson(placed.allocations)) return [];
        return claimed(state, reply && { ...reply, status: 204 }, minor, [placed]);
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
  after: (state, reply) => {
    const consumer = state.consumers[wish.uuid];
    if (reply !== undefined && isLostRace(reply)) return [state];
    if (consumer === undefined) return reply?.status === 404 ? [state] : [];
    if (consumer.generation !== wish.generation) return reply !== undefined && isOldGeneration(reply) ? [state] : [];
    const { project, user, type } = wish;
    const next = { ...consumer, project, user, type, generation: consumer.generation + 1 };
    if (reply !== undefined && !(reply.status === 200 && reply.etag === tags.consumer(next))) return [];
    return [withConsumer(state, wish.uuid, next)];
  },
});

const isUpToDate = (state: State, { uuid, generation }: Wish): boolean =>
  (state.consumers[uuid]?.generation ?? null) === generation;

function claimed(
  state: State,
  reply: Reply | undefined,
  minor: number,
  wishes: readonly Wish[],
  ifMatch?: string,
): readonly State[] {
  if (reply !== undefined && isLostRace(reply)) return [state];
  const refusal = refusalOf(state, minor, wishes, ifMatch);
  if (refusal !== undefined) return reply !== undefined && refusal(reply) ? [state] : [];
  if (reply !== undefined && reply.status !== 204) return [];
  return [written(state, minor, wishes)];
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

function written(state: State, minor: number, wishes: readonly Wish[]): State {
  const changed = new Set<string>();
  let next = state;
  for (const { uuid, allocations, project, user, type } of wishes) {
    const consumer = state.consumers[uuid];
    const isEmpty = Object.keys(allocations).length === 0;
    for (const provider of Object.keys(isEmpty ? (consumer?.allocations ?? {}) : allocations)) changed.add(provider);
    const written: ConsumerState = {
      generation: (consumer?.generation ?? 0) + 1,
      project,
      user,
      type: minor >= 38 ? type : (consumer?.type ?? 'unknown'),
      allocations,
    };
    next = withConsumer(next, uuid, isEmpty ? undefined : written);
  }
  for (const uuid of changed) next = withProvider(next, uuid, { generation: providerOf(next, uuid).generation + 1 });
  return next;
}
