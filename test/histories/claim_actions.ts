import type { Action } from './action.ts';
import { type Allocations, type Claim, claimed, type NewInventories, names, type Wish } from './claim_rules.ts';
import { terms } from './terms.ts';

export const resourcesOf = (allocations: Allocations) =>
  Object.fromEntries(Object.entries(allocations).map(([uuid, resources]) => [uuid, { resources }]));

/** The fields of a consumer in a body, except for what it should have. */
export const ownerFields = (
  { project, user, type, generation, seconds, name }: Omit<Wish, 'allocations'>,
  microversion: number,
) => ({
  project_id: project,
  user_id: user,
  ...(microversion >= 1028 ? { consumer_generation: generation } : {}),
  ...(microversion >= 1038 ? { consumer_type: type } : {}),
  ...(microversion >= terms && seconds !== undefined ? { expires_in: seconds } : {}),
  ...(microversion >= names && name !== undefined ? { name } : {}),
});

const bodyOf = (wish: Wish, microversion: number) => ({
  allocations: resourcesOf(wish.allocations),
  ...ownerFields(wish, microversion),
});

const bodiesOf = (wishes: readonly Wish[], microversion: number) =>
  Object.fromEntries(wishes.map((wish) => [wish.uuid, bodyOf(wish, microversion)]));

const claiming = (claim: Claim): Pick<Action, 'microversion' | 'ifMatch' | 'after'> => ({
  microversion: claim.microversion,
  ifMatch: claim.ifMatch,
  after: (state, reply, effectTime) => claimed(state, reply, effectTime, claim),
});

/** PUT /allocations/{consumer}. */
export const claim = (microversion: number, wish: Wish, ifMatch?: string): Action => ({
  method: 'PUT',
  path: `/allocations/${wish.uuid}`,
  body: bodyOf(wish, microversion),
  ...claiming({ microversion, wishes: [wish], ifMatch }),
});

/** POST /allocations for several consumers. If-Match may have several tags. */
export const claimTogether = (microversion: number, wishes: readonly Wish[], ifMatch?: string): Action => ({
  method: 'POST',
  path: '/allocations',
  body: bodiesOf(wishes, microversion),
  ...claiming({ microversion, wishes, ifMatch, expectsKnownOnly: true }),
});

/** POST /reshaper. If-Match has the tags of inventories and of consumers. */
export const reshape = (
  microversion: number,
  inventories: readonly NewInventories[],
  wishes: readonly Wish[],
  ifMatch?: string,
): Action => ({
  method: 'POST',
  path: '/reshaper',
  body: {
    inventories: Object.fromEntries(
      inventories.map((each) => [
        each.uuid,
        { resource_provider_generation: each.generation, inventories: each.inventories },
      ]),
    ),
    allocations: bodiesOf(
      wishes.map((wish) => ({ ...wish, seconds: undefined })),
      microversion,
    ),
  },
  ...claiming({ microversion, wishes, ifMatch, expectsKnownOnly: true, inventories }),
});
