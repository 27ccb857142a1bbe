import * as v from 'valibot';
import { repeatLostRaces } from '../../../db/engine/lost_race.ts';
import { setTerm } from '../../../db/statements/consumers/set_term.ts';
import { conflict } from '../../request/errors.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { integerOrNull, object } from '../../rest/json_schema.ts';
import { since } from '../../rest/microversions.ts';
import { checkQuery } from '../../rest/schema_check.ts';
import { untilDone } from '../../writes/until_done.ts';
import { termSeconds } from '../allocations/bodies.ts';
import { takesIfMatch } from '../answer_headers.ts';
import type { Dependencies } from '../dependencies.ts';
import { findConsumer, requireConsumerGeneration, taggedAllocations } from './consumers.ts';
import { checkTerm, endText } from './content.ts';

// Routes

export const consumerTermEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'PUT',
    path: '/consumers/:uuid/term',
    since: since.terms,
    policy: 'placement:consumers:term',
    wantsJson: true,
    answersJson: true,
    ...takesIfMatch,
    handle: change,
  },
];

// Request schemas

const noParameters = object({});
const newTerm = object({ expires_in: v.nullable(termSeconds), consumer_generation: integerOrNull() });

// Handlers

/** Renews the term of a consumer, gives it one, or makes it lasting. The generation of the consumer stays. */
async function change(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  checkQuery(request.query(), noParameters);
  const { expires_in: seconds, consumer_generation: known } = await request.json(newTerm);
  if (seconds !== null) checkTerm(request.param('uuid'), seconds, dependencies.config);
  return untilDone(async () => {
    const seen = await findConsumer(request, dependencies);
    const allocations = await taggedAllocations(request, dependencies, seen);
    if (allocations === 'changed') return undefined;
    requireConsumerGeneration(request, seen, known);
    const { uuid, id, generation } = seen;
    if (id === null || generation === null) {
      throw conflict(
        `Consumer ${uuid} has no record, and so it cannot have a term. Complete it with PUT /consumers/${uuid} first.`,
      );
    }
    const set = await repeatLostRaces(() =>
      setTerm(dependencies.database, { uuid, id, generation, allocations }, seconds),
    );
    // Another request has written or removed the consumer meanwhile: it is read again.
    if (set === 'changed') return undefined;
    const json = { consumer_generation: known, expires_at: endText(set.expires) };
    return { status: 200, json, lastModified: new Date() };
  });
}
