import { type Action, isLostRace, isOldGeneration } from './action.ts';
import { isMatch, isOverLimit, nameAfter, names, type Wish } from './claim_rules.ts';
import { isUpToDate, withoutConsumer, withShownGeneration } from './consumer_generations.ts';
import { exceedsLimit, type State, tags, withConsumer } from './state.ts';
import { isFound, isNotFound, termFrom, terms, withShownEnd } from './terms.ts';

/** DELETE /allocations/{consumer}. */
export const release = (microversion: number, uuid: string, ifMatch?: string): Action => ({
  method: 'DELETE',
  path: `/allocations/${uuid}`,
  microversion,
  ifMatch,
  after: (state, reply) => {
    const consumer = state.consumers[uuid];
    const exists = consumer !== undefined;
    if (exists && !isMatch(ifMatch, tags.consumer(consumer))) return reply?.status === 412 ? [state] : [];
    if (reply !== undefined && reply.status !== (exists ? 204 : 404)) return isLostRace(reply) ? [state] : [];
    return exists || reply !== undefined ? [withoutConsumer(state, uuid)] : [];
  },
});

/** PUT /consumers/{consumer}: another owner. */
export const giveTo = (microversion: number, wish: Omit<Wish, 'allocations'>): Action => ({
  method: 'PUT',
  path: `/consumers/${wish.uuid}`,
  microversion,
  body: {
    project_id: wish.project,
    user_id: wish.user,
    consumer_type: wish.type,
    consumer_generation: wish.generation,
    ...(microversion >= names && wish.name !== undefined ? { name: wish.name } : {}),
  },
  after: (state, reply, effectTime) => {
    const consumer = state.consumers[wish.uuid];
    if (reply !== undefined && isLostRace(reply)) return [state];
    if (reply?.status === 404) return isNotFound(consumer, microversion, effectTime) ? [state] : [];
    if (consumer === undefined || !isFound(consumer, microversion, effectTime)) return [];
    if (!isUpToDate(state, wish, microversion)) return reply !== undefined && isOldGeneration(reply) ? [state] : [];
    const { project, user, type } = wish;
    const name = nameAfter(wish, microversion, consumer);
    const next = { ...consumer, project, user, type, name, generation: consumer.generation + 1 };
    if (exceedsLimit(state, withConsumer(state, wish.uuid, next))) {
      return reply !== undefined && isOverLimit(reply) ? [state] : [];
    }
    if (reply !== undefined && !(reply.status === 200 && reply.etag === tags.consumer(next))) return [];
    const after = withConsumer(state, wish.uuid, next);
    return reply === undefined ? [after] : [withShown(after, wish.uuid, microversion, reply.body) ?? []].flat();
  },
});

/** PUT /consumers/{consumer}/term. @param seconds null makes the consumer lasting */
export const setTerm = (
  microversion: number,
  uuid: string,
  generation: number | null,
  seconds: number | null,
): Action => ({
  method: 'PUT',
  path: `/consumers/${uuid}/term`,
  microversion,
  body: { expires_in: seconds, consumer_generation: generation },
  after: (state, reply, effectTime) => {
    const consumer = state.consumers[uuid];
    if (reply?.status === 404) return isNotFound(consumer, microversion, effectTime) ? [state] : [];
    if (consumer === undefined || !isFound(consumer, microversion, effectTime)) return [];
    if (!isUpToDate(state, { uuid, generation }, microversion)) {
      return reply !== undefined && isOldGeneration(reply) ? [state] : [];
    }
    const term = seconds === null ? undefined : termFrom(effectTime, seconds);
    const after = withConsumer(state, uuid, { ...consumer, term });
    if (reply === undefined) return [after];
    return reply.status === 200 ? [withShown(after, uuid, microversion, reply.body) ?? []].flat() : [];
  },
});

/** The state in which the name and the generation of a consumer and the end of its term are what an answer shows. */
export function withShown(state: State, uuid: string, microversion: number, answer: unknown): State | undefined {
  const known = withShownGeneration(state, uuid, microversion, answer);
  const { name } = Object(answer);
  if (name !== undefined && name !== (state.consumers[uuid]?.name ?? null)) return undefined;
  return known === undefined || microversion < terms ? known : withShownEnd(known, uuid, answer);
}
