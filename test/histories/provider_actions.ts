import { type Action, isLostRace, isOldGeneration } from './action.ts';
import type { Reply } from './history.ts';
import { type Inventory, type ProviderState, providerOf, type State, tags, withProvider } from './state.ts';

/** A write of a provider that is guarded by its generation or a tag. */
type Write = {
  readonly uuid: string;
  /** Undefined if the request sends none. */
  readonly generation?: number;
  readonly ifMatch?: string | undefined;
  /** The present tag of what is written. */
  readonly tagOf: (provider: ProviderState) => string | undefined;
  /** Whether the answer shows what is there when it is sent, which may be a later write. */
  readonly showsLater?: boolean;
  readonly change: (provider: ProviderState) => Partial<ProviderState>;
};

const after =
  ({ uuid, generation, ifMatch, tagOf, showsLater, change }: Write) =>
  (state: State, reply: Reply | undefined): readonly State[] => {
    const provider = providerOf(state, uuid);
    if (reply !== undefined && isLostRace(reply)) return [state];
    if (ifMatch !== undefined && tagOf(provider) !== ifMatch) return reply?.status === 412 ? [state] : [];
    if (generation !== undefined && generation !== provider.generation) {
      return reply !== undefined && isOldGeneration(reply) ? [state] : [];
    }
    const next = withProvider(state, uuid, change(provider));
    if (reply === undefined) return [next];
    if (reply.status !== 200) return [];
    if (showsLater) return [next];
    const shown = (reply.body as { readonly resource_provider_generation?: number })?.resource_provider_generation;
    if (shown !== undefined && shown !== providerOf(next, uuid).generation) return [];
    return reply.etag === undefined || reply.etag === tagOf(providerOf(next, uuid)) ? [next] : [];
  };

/** PUT /resource_providers/{uuid}/inventories. */
export const stock = (
  minor: number,
  uuid: string,
  generation: number,
  inventories: Readonly<Record<string, Inventory>>,
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/inventories`,
  minor,
  ifMatch,
  body: { resource_provider_generation: generation, inventories },
  after: after({
    uuid,
    generation,
    ifMatch,
    tagOf: tags.inventories,
    change: (provider) => ({ inventories, generation: provider.generation + 1 }),
  }),
});

/** PUT /resource_providers/{uuid}/inventories/{class}. */
export const stockOne = (
  minor: number,
  uuid: string,
  generation: number,
  resourceClass: string,
  inventory: Inventory,
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/inventories/${resourceClass}`,
  minor,
  ifMatch,
  body: { resource_provider_generation: generation, ...inventory },
  after: after({
    uuid,
    generation,
    ifMatch,
    tagOf: ({ inventories }) => {
      const present = inventories[resourceClass];
      return present && tags.inventory(present);
    },
    change: (provider) => ({
      inventories: { ...provider.inventories, [resourceClass]: inventory },
      generation: provider.generation + 1,
    }),
  }),
});

/** PUT /resource_providers/{uuid}/traits, which raises the generation only if it changes something. */
export const setTraits = (
  minor: number,
  uuid: string,
  generation: number,
  traits: readonly string[],
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/traits`,
  minor,
  ifMatch,
  body: { resource_provider_generation: generation, traits },
  after: after({
    uuid,
    generation,
    ifMatch,
    tagOf: tags.traits,
    change: (provider) =>
      traits.toSorted().join() === provider.traits.toSorted().join()
        ? {}
        : { traits, generation: provider.generation + 1 },
  }),
});

/** PUT /resource_providers/{uuid}/aggregates, from 1.19 on. */
export const setAggregates = (
  minor: number,
  uuid: string,
  generation: number,
  aggregates: readonly string[],
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/aggregates`,
  minor,
  ifMatch,
  body: { resource_provider_generation: generation, aggregates },
  after: after({
    uuid,
    generation,
    ifMatch,
    tagOf: tags.aggregates,
    change: (provider) => ({ aggregates, generation: provider.generation + 1 }),
  }),
});

/** PUT /resource_providers/{uuid}: another name. It has no generation to guard it, but a tag. */
export const rename = (minor: number, uuid: string, name: string, ifMatch?: string): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}`,
  minor,
  ifMatch,
  body: { name },
  after: after({
    uuid,
    ifMatch,
    tagOf: (provider) => tags.provider(uuid, provider),
    showsLater: true,
    change: () => ({ name }),
  }),
});
