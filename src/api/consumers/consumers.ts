import * as v from 'valibot';
import type { Database } from '../../../db/engine/connect.ts';
import { repeatLostRaces } from '../../../db/engine/failures.ts';
import { type CountedWrite, correctUsages } from '../../../db/statements/claims/project_usages.ts';
import type { ConsumerAllocationRow } from '../../../db/statements/claims/read_allocations.ts';
import { type ConsumerRow, readConsumer } from '../../../db/statements/consumers/consumer_row.ts';
import {
  type ConsumerOwner,
  type ConsumerWritten,
  completeConsumer,
  updateConsumer,
} from '../../../db/statements/consumers/consumer_write.ts';
import { listConsumers, listConsumersOfTree } from '../../../db/statements/consumers/list_consumers.ts';
import { setTerm } from '../../../db/statements/consumers/set_term.ts';
import { countingOptions, limitExceeded, limitGuards, projectUsageChanges } from '../../claims/limits.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { incompleteOwner, ownerOr } from '../../placement/consumer.ts';
import { allocationsTag, unknownType } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { isSameUuid, isUuidLike, spellingsOf, withName } from '../../placement/uuid.ts';
import { bySince } from '../../placement/versions.ts';
import { badRequest, conflict, errorCodes, notFound } from '../../request/errors.ts';
import { untilDone } from '../../request/until_done.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { integerOrNull, list as listOf, object, text, time, uuidText } from '../../rest/json_schema.ts';
import { checkUnrepeated } from '../../rest/schema_check.ts';
import { isStorable, timeText } from '../../text/strings.ts';
import { consumerName, echoedEnd, named, ownerId, shownConsumerType, termSeconds } from '../allocations/bodies.ts';
import { generationRemedy, limitRefused } from '../allocations/claim_refusals.ts';
import { requireUncounted } from '../allocations/claim_rights.ts';
import { newest, pageJson, pageParameters, requireMatch, takesIfMatch, usualLimit } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import {
  answerOf,
  checkTerm,
  consumerModifiedAtMs,
  consumersPath,
  contentOf,
  generationFor,
  ownerOf,
  represent,
} from './consumer.ts';
import { checkConsumerMarker, namePartParameter, ofOneProject, ownerParameters, readOnNamed } from './filter.ts';

// Routes

const path = consumersPath;
const one = `${path}/:uuid`;
const shared = { since: since.consumers, answersJson: true } as const;
const rule = (verb: string) => `placement:consumers:${verb}`;

export const consumerEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    ...shared,
    method: 'GET',
    path,
    policy: rule('list'),
    policyTarget: ofOneProject,
    takesParameters: true,
    handle: list,
  },
  { ...shared, method: 'GET', path: one, policy: rule('show'), ownerDecides: true, handle: show },
  {
    ...shared,
    method: 'PUT',
    path: one,
    policy: rule('update'),
    ownerDecides: true,
    wantsJson: true,
    ...takesIfMatch,
    handle: update,
  },
];

// Request schemas

const listParameters = { ...ownerParameters, ...pageParameters(1000) };
const timedParameters = { ...listParameters, expiring_before: v.optional(time) };
const namedParameters = { ...timedParameters, name: v.optional(consumerName), ...namePartParameter };
const listQueries = [
  { since: since.names, schema: object(namedParameters) },
  { since: since.terms, schema: object(timedParameters) },
  { since: since.consumers, schema: object(listParameters) },
] as const;

/** Clients may send back the other fields that GET shows; only the UUID is compared. */
const ownerChange = {
  project_id: ownerId,
  user_id: ownerId,
  consumer_type: shownConsumerType,
  consumer_generation: integerOrNull(),
  uuid: v.optional(uuidText),
  created_at: v.optional(v.nullable(text())),
  updated_at: v.optional(v.nullable(text())),
  etag: v.optional(v.nullable(text())),
  links: v.optional(listOf(object({ rel: text(), href: text() }))),
};
const changes = [
  { since: since.names, schema: object({ ...ownerChange, ...echoedEnd, ...named }) },
  { since: since.terms, schema: object({ ...ownerChange, ...echoedEnd }) },
  { since: since.consumers, schema: object(ownerChange) },
] as const;

// Handlers

async function list(request: ApiRequest, { config, database, fleet }: Dependencies): Promise<Answer> {
  const schema = bySince(listQueries, request.version);
  const { limit = usualLimit, marker, ...filters } = checkUnrepeated(request.query(), schema);
  await checkConsumerMarker(database, marker);
  const query = {
    projectId: filters.project_id,
    userId: filters.user_id,
    consumerType: filters.consumer_type,
    expiringBefore: 'expiring_before' in filters ? filters.expiring_before : undefined,
    name: 'name' in filters ? filters.name : undefined,
    namePart: 'name_contains' in filters ? filters.name_contains : undefined,
    marker,
    limit,
    incomplete: incompleteOwner(config),
  };
  const found = await readOnNamed(fleet, filters, ({ providers, tree }) => {
    const onThem = { ...query, providers };
    return tree.length === 0 ? listConsumers(database, onThem) : listConsumersOfTree(database, onThem, tree);
  });
  const json = pageJson(request, path, found, {
    limit,
    represent: (consumer) => represent(consumer, request, config),
    markerOf: ({ uuid }) => uuid,
  });
  return { status: 200, json, lastModified: newest(found.slice(0, limit).map(consumerModifiedAtMs)) };
}

async function show(request: ApiRequest, { config, database }: Dependencies): Promise<Answer> {
  const consumer = await findConsumer(request, { config, database });
  return answerOf(consumer, request, config);
}

async function update(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const body = await request.json(bySince(changes, request.version));
  const uuid = request.param('uuid');
  if (body.uuid !== undefined && !isSameUuid(body.uuid, uuid)) {
    throw badRequest(`The body is of consumer ${body.uuid}, and the path of ${uuid}; a UUID cannot be changed.`);
  }
  if (request.owners?.({ projectId: body.project_id, userId: body.user_id }) === false) {
    throw request.forbidden(rule('update'));
  }
  const { uncountedTypes } = dependencies.config.placement;
  const { project_id: projectId, user_id: userId, consumer_type: consumerType } = body;
  requireUncounted({ projectId, userId, consumerType }, request, uncountedTypes);
  return untilDone(async (made) => {
    if (made > 0) await dependencies.fleet.fresh();
    const seen = await findConsumer(request, dependencies);
    const owner = {
      projectId: body.project_id,
      userId: body.user_id,
      // A client may send back the value that answers show for a missing one: it changes nothing.
      consumerType: body.consumer_type === unknownType ? seen.consumerType : body.consumer_type,
      name: 'name' in body ? body.name : undefined,
    };
    requireUncounted(owner, request, uncountedTypes);
    const written = await writeOwner(request, dependencies, { seen, owner, generation: body.consumer_generation });
    if (written === 'no owner') {
      const { projectId: projectExternalId, userId: userExternalId, consumerType } = owner;
      await dependencies.claims.owners.ensure({ consumers: [{ projectExternalId, userExternalId, consumerType }] });
    } else if (written === 'in doubt') {
      await repeatLostRaces(() => correctUsages(dependencies.database));
    } else if (written !== 'changed') {
      logChange(request, dependencies, seen, owner);
      const { name = seen.name } = owner;
      const consumer = { ...seen, ...written, ...owner, name, allocations: null };
      return answerOf(consumer, request, dependencies.config);
    }
    return undefined;
  });
}

/**
 * Writes the owner of a consumer as it was seen.
 *
 * @throws ApiError 412 or 409 where the client has seen another state, 403 where the new project has too much already
 */
async function writeOwner(
  request: ApiRequest,
  dependencies: Dependencies,
  {
    seen,
    owner,
    generation,
  }: { readonly seen: ConsumerRow; readonly owner: ConsumerOwner; readonly generation: number | null },
): Promise<Exclude<ConsumerWritten, { readonly exceeded: unknown }>> {
  const { uuid, id } = seen;
  const allocations = await taggedAllocations(request, dependencies, seen);
  if (allocations === 'changed') return 'changed';
  requireConsumerGeneration(request, seen, generation);
  const { database, fleet, config } = dependencies;
  const { known, snapshot: judgedOn } = fleet;
  const counted = known.limits.isCounting ? await countedChange(dependencies, known, seen, owner) : undefined;
  if (counted === 'changed') return 'changed';
  const judgement = { judgedOn, counted, uncountedTypes: config.placement.uncountedTypes };
  const written = await repeatLostRaces(() =>
    id === null || seen.generation === null
      ? completeConsumer(database, { uuid, seen: allocations }, owner, judgement)
      : updateConsumer(database, { uuid, id, generation: seen.generation, allocations }, owner, judgement),
  );
  if (typeof written !== 'object' || !('exceeded' in written)) return written;
  throw limitRefused(limitExceeded(known, written.exceeded, written.used).message, request.version);
}

/** What a change of the owner adds to the usages of projects, and the limits that it must not exceed. */
async function countedChange(
  { allocationReads, config }: Dependencies,
  fleet: Fleet,
  { uuid, generation, consumerType, projectId }: ConsumerRow,
  owner: ConsumerOwner,
): Promise<CountedWrite | 'changed'> {
  const rows = await allocationReads.ofConsumer(uuid);
  const [first] = rows;
  if (first !== undefined && first.consumer_generation !== generation) return 'changed';
  const before = { project: generation === null ? null : projectId, consumerType, amounts: rows };
  const after = { project: owner.projectId, consumerType: owner.consumerType, amounts: rows };
  const usages = projectUsageChanges([before], [after]);
  return { usages, limits: limitGuards(fleet, usages, countingOptions(config)) };
}

/**
 * The allocations that a consumer must still have when it is written, if the client named a tag. The generation guards
 * the owner. The tag also covers the allocations, which may be written without raising the generation.
 *
 * @returns undefined where If-Match names no tag, and `changed` where the consumer is not as it was seen any more
 * @throws ApiError 412
 */
async function taggedAllocations(
  request: ApiRequest,
  { allocationReads, config }: Dependencies,
  { uuid, generation }: ConsumerRow,
): Promise<readonly ConsumerAllocationRow[] | undefined | 'changed'> {
  if (request.ifMatch === undefined || request.ifMatch === '*') return undefined;
  const allocations = await allocationReads.ofConsumer(uuid);
  const content = contentOf(allocations, config);
  if (content !== undefined && allocations[0]?.consumer_generation !== generation) return 'changed';
  requireMatch(request, `Consumer ${uuid}`, () => content && allocationsTag(content));
  return allocations;
}

/** @throws ApiError 409 where the client knows another generation of the consumer. */
function requireConsumerGeneration(request: ApiRequest, seen: ConsumerRow, known: number | null): void {
  const generation = generationFor(request, seen);
  if (known === generation) return;
  const message = `consumer generation conflict - expected ${generation ?? 'null'} but got ${known ?? 'null'}`;
  throw conflict(generationRemedy(message, withName(seen.uuid, seen.name)), errorCodes.concurrentUpdate);
}

/** Such a change moves usage from one project to another, so the log has the user of the request. */
function logChange(
  request: ApiRequest,
  { config, logger }: Dependencies,
  seen: ConsumerRow,
  owner: ConsumerOwner,
): void {
  const before = ownerOf(seen, config);
  const described = (names: ReturnType<typeof ownerOf>) =>
    `project ${names.project_id}, user ${names.user_id}, type ${names.consumer_type}`;
  logger.info(
    `Consumer ${withName(seen.uuid, seen.name)} was of ${described(before)}, and is of ${described(ownerOf(owner, config))} from now on, ` +
      `as user ${request.identity.userId} asked.`,
  );
}

/**
 * The consumer of the path. Where the policy lets the client see only its own consumers, a consumer of another owner is not found. From 2.6
 * on a consumer whose term has expired is not found, also before it is removed.
 *
 * @throws ApiError 404 if there is no such consumer, 400 if no consumer can have the name in the path
 */
async function findConsumer(
  request: ApiRequest,
  { database, config }: Pick<Dependencies, 'database' | 'config'>,
): Promise<ConsumerRow> {
  const sent = request.param('uuid');
  for (const uuid of spellingsOf(sent)) {
    const found = isStorable(uuid) ? await readRow(database, uuid) : undefined;
    if (found === undefined || request.owners?.(ownerOr(incompleteOwner(config), found)) === false) continue;
    if (found.hasEnded && request.version >= since.terms) {
      throw notFound(`No consumer with uuid ${sent} found: its term has expired, and it is removed soon`);
    }
    return found;
  }
  if (!isUuidLike(sent))
    throw badRequest(
      `Malformed uuid of a consumer: ${sent}. GET /consumers?name=NAME finds it by its name, from 2.9 on.`,
    );
  throw notFound(`No consumer with uuid ${sent} found`);
}

const readRow = (database: Database, uuid: string): Promise<ConsumerRow | undefined> =>
  repeatLostRaces(() => readConsumer(database, uuid));

// Routes

export const consumerTermEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'PUT',
    path: '/consumers/:uuid/term',
    since: since.terms,
    policy: 'placement:consumers:term',
    ownerDecides: true,
    wantsJson: true,
    answersJson: true,
    ...takesIfMatch,
    handle: change,
  },
];

// Request schemas

const newTerm = object({ expires_in: v.nullable(termSeconds), consumer_generation: integerOrNull() });

// Handlers

/** Renews, sets or removes the term of a consumer. The generation of the consumer stays. */
async function change(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
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
    const json = { consumer_generation: known, expires_at: timeText(set.expires) };
    return { status: 200, json, lastModified: new Date() };
  });
}
