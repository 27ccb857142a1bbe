import { type Action, errorOf, isLostRace, isOldGeneration } from './action.ts';
import { isInUse, isMatch, isUnknown } from './claim_rules.ts';
import type { Reply } from './history.ts';
import { isMended } from './mended.ts';
import {
  type Inventory,
  isClass,
  type ProviderState,
  providerOf,
  type State,
  tags,
  usedOf,
  withProvider,
} from './state.ts';

/** A write of a provider that is guarded by its generation or a tag. */
type Write = {
  readonly uuid: string;
  /** Undefined if the request sends none. */
  readonly generation?: number;
  readonly ifMatch?: string | undefined;
  /** The tag with which If-Match is compared. */
  readonly tagOf: (provider: ProviderState) => string | undefined;
  /** The tag of the answer, if it is another one. */
  readonly answerTagOf?: (provider: ProviderState) => string | undefined;
  /** Further refusals: whether an answer says why nothing is written in a state. */
  readonly refusal?: (state: State, provider: ProviderState) => ((reply: Reply) => boolean) | undefined;
  /** The status of a success. */
  readonly status?: number;
  readonly change: (provider: ProviderState) => Partial<ProviderState>;
};

const after =
  ({ uuid, generation, ifMatch, tagOf, answerTagOf = tagOf, refusal, status = 200, change }: Write) =>
  (state: State, reply: Reply | undefined): readonly State[] => {
    if (reply !== undefined && isLostRace(reply)) return [state];
    const provider = state.providers[uuid];
    if (provider === undefined) return reply?.status === 404 ? [state] : [];
    if (!isMatch(ifMatch, tagOf(provider))) return reply?.status === 412 ? [state] : [];
    if (generation !== undefined && generation !== provider.generation) {
      return reply !== undefined && isOldGeneration(reply) ? [state] : [];
    }
    const isRefused = refusal?.(state, provider);
    if (isRefused !== undefined) return reply !== undefined && isRefused(reply) ? [state] : [];
    const next = withProvider(state, uuid, change(provider));
    if (reply === undefined) return [next];
    if (reply.status !== status) return [];
    const shown = (reply.body as { readonly resource_provider_generation?: number })?.resource_provider_generation;
    if (shown !== undefined && shown !== providerOf(next, uuid).generation) return [];
    const hasTag = reply.etag === undefined || reply.etag === answerTagOf(providerOf(next, uuid));
    return hasTag || showsOtherNames(reply, providerOf(next, uuid)) ? [next] : [];
  };

/** Whether an answer names classes that were renamed after the write. */
function showsOtherNames({ body }: Reply, { inventories }: ProviderState): boolean {
  const { inventories: shown } = body as { readonly inventories?: object };
  if (isMended.namesAsWritten || shown === undefined) return false;
  return !Object.keys(shown).every((name) => Object.hasOwn(inventories, name));
}

/** Why inventories may not stand in the place of those that a provider has: unknown classes, or allocations of those that go. */
const unlessAllowed =
  (uuid: string, names: readonly string[], goes: (name: string) => boolean) =>
  (state: State, { inventories }: ProviderState): ((reply: Reply) => boolean) | undefined => {
    if (!names.every((name) => isClass(state, name))) return isUnknown;
    const isLeft = Object.keys(inventories).some((name) => goes(name) && usedOf(state, uuid, name) > 0);
    return isLeft ? isInUse : undefined;
  };

const tagOfOne =
  (resourceClass: string) =>
  ({ inventories }: ProviderState): string | undefined => {
    const present = inventories[resourceClass];
    return present && tags.inventory(present);
  };

/** PUT /resource_providers/{uuid}/inventories. */
export const stock = (
  microversion: number,
  uuid: string,
  generation: number,
  inventories: Readonly<Record<string, Inventory>>,
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/inventories`,
  microversion,
  ifMatch,
  body: { resource_provider_generation: generation, inventories },
  after: after({
    uuid,
    generation,
    ifMatch,
    tagOf: tags.inventories,
    refusal: unlessAllowed(uuid, Object.keys(inventories), (name) => inventories[name] === undefined),
    change: (provider) => ({ inventories, generation: provider.generation + 1 }),
  }),
});

/** PUT /resource_providers/{uuid}/inventories/{class}. */
export const stockOne = (
  microversion: number,
  uuid: string,
  generation: number,
  resourceClass: string,
  inventory: Inventory,
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/inventories/${resourceClass}`,
  microversion,
  ifMatch,
  body: { resource_provider_generation: generation, ...inventory },
  after: after({
    uuid,
    generation,
    ifMatch,
    tagOf: tagOfOne(resourceClass),
    refusal: (state, { inventories }) => {
      if (!isClass(state, resourceClass)) return ({ status }) => status === 404;
      return inventories[resourceClass] === undefined ? ({ status }) => status === 400 : undefined;
    },
    change: (provider) => ({
      inventories: { ...provider.inventories, [resourceClass]: inventory },
      generation: provider.generation + 1,
    }),
  }),
});

/** POST /resource_providers/{uuid}/inventories, at any generation. If-Match has the tag of all inventories. */
export const stockAnother = (
  microversion: number,
  uuid: string,
  resourceClass: string,
  inventory: Inventory,
  ifMatch?: string,
): Action => ({
  method: 'POST',
  path: `/resource_providers/${uuid}/inventories`,
  microversion,
  ifMatch,
  body: { resource_class: resourceClass, ...inventory },
  after: after({
    uuid,
    ifMatch,
    tagOf: tags.inventories,
    answerTagOf: tagOfOne(resourceClass),
    refusal: (state, { inventories }) => {
      if (!isClass(state, resourceClass)) return isUnknown;
      if (inventories[resourceClass] === undefined) return undefined;
      return (reply) => reply.status === 409 && errorOf(reply).detail.includes('already exists');
    },
    status: 201,
    change: (provider) => ({
      inventories: { ...provider.inventories, [resourceClass]: inventory },
      generation: provider.generation + 1,
    }),
  }),
});

/** DELETE /resource_providers/{uuid}/inventories/{class}, at any generation. */
export const removeOne = (microversion: number, uuid: string, resourceClass: string, ifMatch?: string): Action => ({
  method: 'DELETE',
  path: `/resource_providers/${uuid}/inventories/${resourceClass}`,
  microversion,
  ifMatch,
  after: (state, reply) => {
    const isThere = state.providers[uuid]?.inventories[resourceClass] !== undefined;
    if (!isThere) return reply?.status === 404 || (reply !== undefined && isLostRace(reply)) ? [state] : [];
    return after({
      uuid,
      ifMatch,
      tagOf: tagOfOne(resourceClass),
      refusal: unlessAllowed(uuid, [], (name) => name === resourceClass),
      status: 204,
      change: ({ generation, inventories: { [resourceClass]: _, ...inventories } }) => ({
        inventories,
        generation: generation + 1,
      }),
    })(state, reply);
  },
});

/** PUT /resource_providers/{uuid}/traits, which raises the generation only if it changes something. */
export const setTraits = (
  microversion: number,
  uuid: string,
  generation: number,
  traits: readonly string[],
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/traits`,
  microversion,
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
  microversion: number,
  uuid: string,
  generation: number,
  aggregates: readonly string[],
  ifMatch?: string,
): Action => ({
  method: 'PUT',
  path: `/resource_providers/${uuid}/aggregates`,
  microversion,
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
