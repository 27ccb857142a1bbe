import type { Action } from './action.ts';
import { withShown } from './consumer_actions.ts';
import { withShownGeneration } from './consumer_generations.ts';
import type { Reply } from './history.ts';
import {
  type Amounts,
  type ProviderState,
  providerOf,
  type State,
  shows,
  showsExactly,
  tags,
  usedOf,
} from './state.ts';
import { type EffectTime, isFound, isNotFound } from './terms.ts';
import { rootOf, treeOf } from './trees.ts';

/** A GET, whose answer is right in some states. */
export const read = (
  microversion: number,
  path: string,
  isRight: (state: State, reply: Reply, effectTime: EffectTime) => boolean,
): Action => ({
  method: 'GET',
  path,
  microversion,
  after: (state, reply, effectTime) => (reply === undefined || isRight(state, reply, effectTime) ? [state] : []),
});

/** A GET that shows the generation of a consumer, and from 2.6 on the end of its term. */
const readOfConsumer = (
  microversion: number,
  path: string,
  uuid: string,
  isRight: (state: State, reply: Reply, effectTime: EffectTime) => boolean,
): Action => {
  const { after, ...action } = read(microversion, path, isRight);
  return {
    ...action,
    after: (state, reply, effectTime) =>
      after(state, reply, effectTime).flatMap((each) => {
        if (reply?.status !== 200 || each.consumers[uuid] === undefined) return [each];
        return withShown(each, uuid, microversion, reply.body) ?? [];
      }),
  };
};

const ofProvider = (
  microversion: number,
  uuid: string,
  part: string,
  content: (provider: ProviderState, state: State) => Readonly<Record<string, unknown>>,
  tagOf?: (provider: ProviderState) => string,
): Action =>
  read(microversion, `/resource_providers/${uuid}${part}`, (state, { status, body, etag }) => {
    const provider = state.providers[uuid];
    if (provider === undefined) return status === 404;
    const hasTag = tagOf === undefined || microversion < 2001 || etag === tagOf(provider);
    return status === 200 && hasTag && shows(body, content(provider, state));
  });

const usagesOf = (state: State, uuid: string): Amounts =>
  Object.fromEntries(Object.keys(providerOf(state, uuid).inventories).map((name) => [name, usedOf(state, uuid, name)]));

/** Where a provider is in its tree, as answers show it from 1.14 on. */
export const placeOf = (state: State, uuid: string, parent: string | null) => ({
  parent_provider_uuid: parent,
  root_provider_uuid: rootOf(state, uuid),
});

/** GET /resource_providers/{uuid}/inventories. */
export const readInventories = (microversion: number, uuid: string): Action =>
  ofProvider(
    microversion,
    uuid,
    '/inventories',
    ({ generation, inventories }) => ({ resource_provider_generation: generation, inventories }),
    tags.inventories,
  );

/** The reads of one provider, from 1.28 on. */
export const providerReads: readonly ((microversion: number, uuid: string) => Action)[] = [
  (microversion, uuid) =>
    ofProvider(
      microversion,
      uuid,
      '',
      ({ name, generation, parent }, state) => ({ uuid, name, generation, ...placeOf(state, uuid, parent) }),
      (provider) => tags.provider(uuid, provider),
    ),
  readInventories,
  (microversion, uuid) =>
    ofProvider(
      microversion,
      uuid,
      '/traits',
      ({ generation, traits }) => ({ resource_provider_generation: generation, traits }),
      tags.traits,
    ),
  (microversion, uuid) =>
    ofProvider(
      microversion,
      uuid,
      '/aggregates',
      ({ generation, aggregates }) => ({ resource_provider_generation: generation, aggregates }),
      tags.aggregates,
    ),
  (microversion, uuid) =>
    ofProvider(microversion, uuid, '/usages', ({ generation }, state) => ({
      resource_provider_generation: generation,
      usages: usagesOf(state, uuid),
    })),
];

/** GET /resource_providers/{uuid}/allocations: all consumers of a provider. */
export function readHolders(microversion: number, uuid: string): Action {
  const { after, ...action } = read(
    microversion,
    `/resource_providers/${uuid}/allocations`,
    (state, { status, body }) => {
      const holders = Object.entries(state.consumers).flatMap(([consumer, { allocations }]) => {
        const resources = allocations[uuid];
        return resources === undefined ? [] : [[consumer, { resources }] as const];
      });
      const provider = state.providers[uuid];
      if (provider === undefined) return status === 404;
      const { allocations } = body as { readonly allocations?: unknown };
      const { generation } = provider;
      return (
        status === 200 &&
        showsExactly(allocations, Object.fromEntries(holders)) &&
        shows(body, { resource_provider_generation: generation })
      );
    },
  );
  return {
    ...action,
    after: (state, reply, effectTime) => {
      const { allocations = {} } = (reply?.body ?? {}) as { readonly allocations?: Readonly<Record<string, unknown>> };
      return Object.entries(allocations).reduce<readonly State[]>(
        (states, [consumer, shown]) =>
          states.flatMap((each) => withShownGeneration(each, consumer, microversion, shown) ?? []),
        after(state, reply, effectTime),
      );
    },
  };
}

/** GET /allocations/{consumer}, from 1.28 on. */
export const readAllocations = (microversion: number, uuid: string): Action =>
  readOfConsumer(microversion, `/allocations/${uuid}`, uuid, (state, { status, body, etag }) => {
    const consumer = state.consumers[uuid];
    if (status !== 200) return false;
    const { allocations } = body as { readonly allocations?: unknown };
    if (consumer === undefined) return showsExactly(allocations, {});
    const { project, user, type } = consumer;
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
        ...(microversion >= 1038 ? { consumer_type: type } : {}),
      }) &&
      (microversion < 2001 || etag === tags.consumer(consumer))
    );
  });

/** GET /consumers/{consumer}, from 2.2 on. */
export const readConsumer = (microversion: number, uuid: string): Action =>
  readOfConsumer(microversion, `/consumers/${uuid}`, uuid, (state, { status, body }, effectTime) => {
    const consumer = state.consumers[uuid];
    if (status === 404) return isNotFound(consumer, microversion, effectTime);
    if (consumer === undefined || !isFound(consumer, microversion, effectTime)) return false;
    const { project, user, type } = consumer;
    return shows(body, {
      project_id: project,
      user_id: user,
      consumer_type: type,
      etag: tags.consumer(consumer),
    });
  });

/** GET /usages of a project, below 1.38, where they are sums by class. */
export const readProjectUsages = (microversion: number, project: string): Action =>
  read(microversion, `/usages?project_id=${project}`, (state, { status, body }) => {
    const usages: Record<string, number> = {};
    for (const consumer of Object.values(state.consumers)) {
      if (consumer.project !== project) continue;
      for (const amounts of Object.values(consumer.allocations)) {
        for (const [name, amount] of Object.entries(amounts)) usages[name] = (usages[name] ?? 0) + amount;
      }
    }
    return status === 200 && showsExactly((body as { readonly usages?: unknown }).usages, usages);
  });

/** GET /provider_summaries of all providers of the history, from 2.2 on. */
export const readSummaries = (microversion: number, uuids: readonly string[]): Action =>
  read(microversion, `/provider_summaries?uuid=in:${uuids}`, (state, { status, body }) => {
    const { provider_summaries: shown = [] } = body as {
      readonly provider_summaries?: readonly { readonly uuid: string }[];
    };
    const present = uuids.filter((uuid) => state.providers[uuid] !== undefined);
    return (
      status === 200 &&
      shown.length === present.length &&
      present.every((uuid) => {
        const { name, generation, parent, inventories, traits, aggregates } = providerOf(state, uuid);
        const usages = usagesOf(state, uuid);
        const summary = shown.find((each) => each.uuid === uuid);
        const location = placeOf(state, uuid, parent);
        return shows(summary, { name, generation, ...location, inventories, usages, traits, aggregates });
      })
    );
  });

/** GET /resource_providers of the tree that a provider is in, from 1.14 on. */
export const readTree = (microversion: number, uuid: string): Action =>
  read(microversion, `/resource_providers?in_tree=${uuid}`, (state, { status, body }) => {
    const { resource_providers: shown = [] } = body as {
      readonly resource_providers?: readonly { readonly uuid: string }[];
    };
    const tree = state.providers[uuid] === undefined ? [] : treeOf(state, rootOf(state, uuid));
    return (
      status === 200 &&
      shown.length === tree.length &&
      tree.every((each) => {
        const { name, generation, parent } = providerOf(state, each);
        return shows(
          shown.find((one) => one.uuid === each),
          { name, generation, ...placeOf(state, each, parent) },
        );
      })
    );
  });

/** GET /resource_classes/{name}. */
export const readClass = (microversion: number, name: string): Action =>
  read(
    microversion,
    `/resource_classes/${name}`,
    ({ classes }, { status }) => status === (classes.includes(name) ? 200 : 404),
  );
