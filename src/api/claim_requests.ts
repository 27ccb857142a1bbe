import { type Claim, ClaimRefused, type ConsumerClaim, type RefusalReason } from '../claims/claim.ts';
import type { Config } from '../config/config.ts';
import { type ApiError, badRequest, conflict, errorCodes } from '../errors.ts';
import { unknownType } from '../placement/entity_tag.ts';
import type { ConsumerBody } from './allocation_bodies.ts';
import type { ApiRequest } from './endpoint.ts';
import { preconditionFailed } from './entity_tags.ts';
import type { Parts } from './parts.ts';

/** From microversion 1.28 on the client says which generation of the consumer it knows. */
const consumerGenerationSince = 28;

/** What a body says of a consumer, in whichever of its formats. */
export function consumerClaim(
  uuid: string,
  body: ConsumerBody,
  { version, ifMatch }: Pick<ApiRequest, 'version' | 'ifMatch'>,
  config: Config,
): ConsumerClaim {
  const { incompleteConsumerProjectId, incompleteConsumerUserId } = config.placement;
  const listed = Array.isArray(body.allocations)
    ? body.allocations.map((allocation) => [allocation.resource_provider.uuid, allocation.resources] as const)
    : Object.entries(body.allocations).map(([provider, { resources }]) => [provider, resources] as const);
  return {
    uuid,
    knownGeneration: version >= consumerGenerationSince ? (body.consumer_generation ?? null) : undefined,
    // Before 1.8 nobody is named, and the configured ones replace even those that are known.
    projectId: body.project_id ?? incompleteConsumerProjectId,
    userId: body.project_id === undefined ? incompleteConsumerUserId : (body.user_id ?? incompleteConsumerUserId),
    consumerType: body.consumer_type === unknownType ? undefined : body.consumer_type,
    expected: ifMatch && {
      ifMatch,
      incompleteOwner: { projectId: incompleteConsumerProjectId, userId: incompleteConsumerUserId },
    },
    allocations: new Map(listed.map(([provider, resources]) => [provider, new Map(Object.entries(resources))])),
  };
}

/**
 * Claims of several consumers, of which If-Match concerns those that the client knows: one that it says is new (its generation
 * null) has nothing that a tag could be of, and must have nothing in any case.
 */
export const expectKnownOnly = (claims: readonly ConsumerClaim[]): readonly ConsumerClaim[] =>
  claims.map((claim) => (claim.knownGeneration === null ? { ...claim, expected: undefined } : claim));

/** How a sentence begins about what a request may be made to match. */
export const allocationsOf = (uuid: string): string => `What consumer ${uuid} has`;
const inventoriesOf = (uuid: string): string => `What resource provider ${uuid} has`;

/** How a kind of request words the refusals that differ between them. */
type Wording = { readonly notFound: string; readonly concurrentUpdate?: string };

/** Writes the claim of a request. @throws ApiError 400 or 409 that says what stood against it. */
export async function writeClaim({ claims }: Parts, claim: Claim, wording: Wording): Promise<void> {
  try {
    await claims.write(claim);
  } catch (error) {
    throw error instanceof ClaimRefused ? refusals[error.reason](error.message, wording) : error;
  }
}

const refusals: Readonly<Record<RefusalReason, (message: string, wording: Wording) => ApiError>> = {
  'unmatched consumer': (uuid) => preconditionFailed(allocationsOf(uuid)),
  'unmatched inventories': (uuid) => preconditionFailed(inventoriesOf(uuid)),
  'consumer generation': (message) => conflict(message, errorCodes.concurrentUpdate),
  'provider generation': (message) => conflict(message, errorCodes.concurrentUpdate),
  'unknown provider': (message) => badRequest(message),
  'unknown inventory provider': (message) => badRequest(message, errorCodes.providerNotFound),
  'unknown class': (message, { notFound }) => badRequest(`${notFound} ${message}`),
  'invalid inventory': (message) => conflict(`Unable to allocate inventory: ${message}`),
  'inventory in use': (message) => conflict(`update conflict: ${message}`, errorCodes.inventoryInUse),
  'concurrent update': (message, { concurrentUpdate }) =>
    conflict(
      `${concurrentUpdate ?? 'Inventory and/or allocations changed while attempting to allocate:'} ${message}`,
      errorCodes.concurrentUpdate,
    ),
};
