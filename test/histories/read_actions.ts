import type { Action } from './action.ts';
import type { Reply } from './history.ts';
import {
  type Amounts,
  capacityOf,
  type ProviderState,
  providerOf,
  type State,
  shows,
  showsExactly,
  tags,
  usedOf,
} from './state.ts';
import { isFound, isNotFound, type Moment, terms, withShownEnd } from './terms.ts';

/** A GET, whose answer is right in some states. */
const read = (
  minor: number,
  path: string,
  isRight: (state: State, reply: Reply, moment: Moment) => boolean,
): Action => ({
  method: 'GET',
  path,
  minor,
  after: (state, reply, moment) => (reply === undefined || isRight(state, reply, moment) ? [state] : []),
});

/** A GET that shows the end of a consumer's term from 1.45 on. */
const readWithEnd = (
  minor: number,
  path: string,
  uuid: string,
  isRight: (state: State, reply: Reply, moment: Moment) => boolean,
): Action => {
  const { after, ...action } = read(minor, path, isRight);
  return {
    ...action,
    after: (state, reply, moment) =>
      after(state, reply, moment).flatMap((each) => {
        if (reply?.status !== 200 || minor < terms || each.consumers[uuid] === undefined) return [each];
        return withShownEnd(each, uuid, reply.body) ?? [];
      }),
  };
};

const ofProvider = (
  minor: number,
  uuid: string,
  part: string,
  content: (provider: ProviderState, state: State) => Readonly<Record<string, unknown>>,
  tagOf?: (provider: ProviderState) => string,
): Action =>
  read(minor, `/resource_providers/${uuid}${part}`, (state, { status, body, etag }) => {
    const provider = providerOf(state, uuid);
    const hasTag = tagOf === undefined || minor < 40 || etag === tagOf(provider);
    return status === 200 && hasTag && shows(body, content(provider, state));
  });

const usagesOf = (state: State, uuid: string): Amounts =>
  Object.fromEntries(Object.keys(providerOf(state, uuid).inventories).map((name) => [name, usedOf(state, uuid, name)]));

/** The reads of one provider, from 1.28 on. */
export const providerReads: readonly ((minor: number, uuid: string) => Action)[] = [
  (minor, uuid) =>
    ofProvider(
      minor,
      uuid,
      '',
      ({ name, generation }) => ({ uuid, name, generation }),
      (provider) => tags.provider(uuid, provider),
    ),
  (minor, uuid) =>
    ofProvider(
      minor,
      uuid,
      '/inventories',
      ({ generation, inventories }) => ({ resource_provider_generation: generation, inventories }),
      tags.inventories,
    ),
  (minor, uuid) =>
    ofProvider(
      minor,
      uuid,
      '/traits',
      ({ generation, traits }) => ({ resource_provider_generation: generation, traits }),
      tags.traits,
    ),
  (minor, uuid) =>
    ofProvider(
      minor,
      uuid,
      '/aggregates',
      ({ generation, aggregates }) => ({ resource_provider_generation: generation, aggregates }),
      tags.aggregates,
    ),
  (minor, uuid) =>
    ofProvider(minor, uuid, '/usages', ({ generation }, state) => ({
      resource_provider_generation: generation,
      usages: usagesOf(state, uuid),
    })),
];

/** GET /resource_providers/{uuid}/allocations: all consumers of a provider. */
export const readHolders = (minor: number, uuid: string): Action =>
  read(minor, `/resource_providers/${uuid}/allocations`, (state, { status, body }) => {
    const holders = Object.entries(state.consumers).flatMap(([consumer, { allocations, generation }]) => {
      const resources = allocations[uuid];
      return resources === undefined ? [] : [[consumer, { resources, consumer_generation: generation }] as const];
    });
    const { allocations } = body as { readonly allocations?: unknown };
    const { generation } = providerOf(state, uuid);
    return (
      status === 200 &&
      showsExactly(allocations, Object.fromEntries(holders)) &&
      shows(body, { resource_provider_generation: generation })
    );
  });

/** GET /allocations/{consumer}, from 1.28 on. */
export const readAllocations = (minor: number, uuid: string): Action =>
  readWithEnd(minor, `/allocations/${uuid}`, uuid, (state, { status, body, etag }) => {
    const consumer = state.consumers[uuid];
    if (status !== 200) return false;
    const { allocations } = body as { readonly allocations?: unknown };
    if (consumer === undefined) return showsExactly(allocations, {});
    const { generation, project, user, type } = consumer;
    const expected = Object.fromEntries(
      Object.entries(consumer.allocations).map(([provider, resources]) => [
        provider,
        { generation: providerOf(state, provider).generation, resources },
      ]),
    );
    return (
      showsExactly(allocations, expected) &&
      Object.entries(consumer.allocations).every(([provider, resources]) =>
        showsExactly((allocations as Record<string, { resources?: unknown }>)[provider]?.resources, resources),
      ) &&
      shows(body, {
        project_id: project,
        user_id: user,
        consumer_generation: generation,
        ...(minor >= 38 ? { consumer_type: type } : {}),
      }) &&
      (minor < 40 || etag === tags.consumer(consumer))
    );
  });

/** GET /consumers/{consumer}, from 1.41 on. */
export const readConsumer = (minor: number, uuid: string): Action =>
  readWithEnd(minor, `/consumers/${uuid}`, uuid, (state, { status, body }, moment) => {
    const consumer = state.consumers[uuid];
    if (status === 404) return isNotFound(consumer, minor, moment);
    if (consumer === undefined || !isFound(consumer, minor, moment)) return false;
    const { generation, project, user, type } = consumer;
    return shows(body, {
      project_id: project,
      user_id: user,
      consumer_generation: generation,
      consumer_type: type,
      etag: tags.consumer(consumer),
    });
  });

/** GET /usages of a project, below 1.38, where they are sums by class. */
export const readProjectUsages = (minor: number, project: string): Action =>
  read(minor, `/usages?project_id=${project}`, (state, { status, body }) => {
    const usages: Record<string, number> = {};
    for (const consumer of Object.values(state.consumers)) {
      if (consumer.project !== project) continue;
      for (const amounts of Object.values(consumer.allocations)) {
        for (const [name, amount] of Object.entries(amounts)) usages[name] = (usages[name] ?? 0) + amount;
      }
    }
    return status === 200 && showsExactly((body as { readonly usages?: unknown }).usages, usages);
  });

/** GET /allocation_candidates for an amount of VCPU in an aggregate, from 1.29 on: what fits, and all of it at one time. */
export const readCandidates = (minor: number, amount: number, aggregate: string): Action =>
  read(minor, `/allocation_candidates?resources=VCPU:${amount}&member_of=${aggregate}`, (state, { status, body }) => {
    if (status !== 200) return false;
    const fitting = Object.entries(state.providers).filter(([uuid, { inventories, aggregates }]) => {
      const { VCPU: inventory } = inventories;
      return (
        aggregates.includes(aggregate) &&
        inventory !== undefined &&
        amount >= inventory.min_unit &&
        amount <= inventory.max_unit &&
        amount % inventory.step_size === 0 &&
        usedOf(state, uuid, 'VCPU') + amount <= capacityOf(inventory)
      );
    });
    const summaries = fitting.map(([uuid, { inventories, traits }]) => {
      const resources = Object.entries(inventories).map(([name, inventory]) => [
        name,
        { capacity: capacityOf(inventory), used: usedOf(state, uuid, name) },
      ]);
      return [uuid, { resources: Object.fromEntries(resources), traits }] as const;
    });
    const answer = body as {
      readonly allocation_requests?: readonly { readonly allocations: object }[];
      readonly provider_summaries?: unknown;
    };
    const chosen = answer.allocation_requests?.map(({ allocations }) => allocations);
    const expected = fitting.map(([uuid]) => ({ [uuid]: { resources: { VCPU: amount } } }));
    return shows(chosen, expected) && showsExactly(answer.provider_summaries, Object.fromEntries(summaries));
  });

/** GET /provider_summaries of all providers of the history, from 1.41 on. */
export const readSummaries = (minor: number, uuids: readonly string[]): Action =>
  read(minor, `/provider_summaries?uuid=in:${uuids}`, (state, { status, body }) => {
    const shown = (body as { readonly provider_summaries?: readonly { readonly uuid: string }[] }).provider_summaries;
    return (
      status === 200 &&
      uuids.every((uuid) => {
        const { name, generation, inventories, traits, aggregates } = providerOf(state, uuid);
        const usages = usagesOf(state, uuid);
        const summary = shown?.find((each) => each.uuid === uuid);
        return shows(summary, { name, generation, inventories, usages, traits, aggregates });
      })
    );
  });
