import * as v from 'valibot';
import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { readConsumer } from '../../../db/statements/consumers/consumer_row.ts';
import type { JudgedNode } from '../../../db/statements/providers/judged_provider.ts';
import type { FleetKeeper } from '../../fleet/keep/keeper.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { type Provider, treeOf } from '../../fleet/model/provider.ts';
import { isUuidLike } from '../../placement/uuid.ts';
import { badRequest, noSuchProvider } from '../../request/errors.ts';
import { changedTooMuch } from '../../request/turns.ts';
import { untilDone } from '../../request/until_done.ts';
import type { ApiRequest, PolicyTarget } from '../../rest/endpoint.ts';
import { uuidText } from '../../rest/json_schema.ts';
import { consumerName, ownerId, shownConsumerType } from '../allocations/bodies.ts';
import { checkMarker } from '../answers.ts';
import { findInAnySpelling, judgedNodes } from '../resource_providers/provider.ts';

/*
 * The parameters by which consumers are selected, and what they hold.
 */

/** Parameters about the owner of a consumer, and about the providers of its allocations. */
export const ownerParameters = {
  project_id: v.optional(ownerId),
  user_id: v.optional(ownerId),
  consumer_type: v.optional(shownConsumerType),
  resource_provider: v.optional(uuidText),
  in_tree: v.optional(uuidText),
};

/** From 2.9 on: a text in the name of the consumer. */
export const namePartParameter = { name_contains: v.optional(consumerName) };

/** The project that the policy compares with the project of the user. A query that names a provider concerns all projects: null. */
export function ofOneProject({ query }: ApiRequest): PolicyTarget {
  const { last } = query();
  const namesProvider = last('resource_provider') !== undefined || last('in_tree') !== undefined;
  return { project_id: namesProvider ? null : (last('project_id') ?? null) };
}

/** Refuses a marker that is neither a UUID nor the name of a consumer that another program has stored. @throws ApiError 400 */
export async function checkConsumerMarker(database: Database, marker: string | undefined): Promise<void> {
  const isKnown =
    marker !== undefined &&
    !isUuidLike(marker) &&
    (await repeatLostRaces(() => readConsumer(database, marker))) !== undefined;
  checkMarker(marker, () => isKnown);
}

type ProviderParameters = { readonly resource_provider?: string | undefined; readonly in_tree?: string | undefined };

/** The providers that a query names. */
type NamedProviders = {
  /** Lists of ids: the consumer must have something of a provider of each list. Without a named provider there is no list. */
  readonly providers: readonly (readonly number[])[];
  /** All providers of the tree by whose shape they were found. */
  readonly tree: readonly JudgedNode[];
};

/**
 * Reads what consumers have of the named providers, and reads again if a tree of theirs changes meanwhile.
 *
 * @param read resolves to `changed` if the tree has another shape in its snapshot
 * @throws ApiError 400 for a provider that does not exist, 503 if a tree has changed each time
 */
export function readOnNamed<Result extends object>(
  fleet: Pick<FleetKeeper, 'fresh'>,
  parameters: ProviderParameters,
  read: (named: NamedProviders) => Promise<Result | 'changed'>,
): Promise<Result> {
  const isAny = parameters.resource_provider === undefined && parameters.in_tree === undefined;
  const attempt = async (): Promise<Result | undefined> => {
    const named = isAny ? { providers: [], tree: [] } : findNamed(await fleet.fresh(), parameters);
    const found = await repeatLostRaces(() => read(named));
    return found === 'changed' ? undefined : found;
  };
  return untilDone(attempt, { lostRace: changedTooMuch });
}

/** @throws ApiError 400 that names the parameter, for a provider that does not exist */
function find(fleet: Fleet, name: keyof ProviderParameters, uuid: string): Provider {
  const provider = findInAnySpelling(fleet, uuid);
  if (provider === undefined) {
    throw badRequest(`Invalid query string parameters: '${name}' is of no provider. ${noSuchProvider(uuid)}.`);
  }
  return provider;
}

/** The providers of the tree that `in_tree` names. @throws ApiError 400 for a provider that does not exist */
export const treeNamed = (fleet: Fleet, inTree: string): readonly Provider[] =>
  treeOf(find(fleet, 'in_tree', inTree).root);

function findNamed(fleet: Fleet, { resource_provider: uuid, in_tree: inTree }: ProviderParameters): NamedProviders {
  const provider = uuid === undefined ? undefined : find(fleet, 'resource_provider', uuid);
  const tree = inTree === undefined ? [] : treeNamed(fleet, inTree);
  const isInTree = provider !== undefined && tree.includes(provider);
  return {
    providers: [
      ...(inTree === undefined || isInTree ? [] : [tree.map(({ id }) => id)]),
      ...(provider === undefined ? [] : [[provider.id]]),
    ],
    tree: judgedNodes(tree),
  };
}
