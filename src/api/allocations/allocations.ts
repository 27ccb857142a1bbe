import * as v from 'valibot';
import { failureKind } from '../../../db/engine/failures.ts';
import { deleteSeenAllocations } from '../../../db/statements/claims/delete_allocations.ts';
import type { ConsumerAllocationRow } from '../../../db/statements/claims/read_allocations.ts';
import { type ClaimOutcome, type ConsumerOutcome, isByQuery } from '../../claims/claim.ts';
import { goesOn } from '../../placement/consumer.ts';
import { allocationsTag, unknownType } from '../../placement/entity_tag.ts';
import { since } from '../../placement/microversions.ts';
import { spellingsAt } from '../../placement/spellings.ts';
import { isUuidLike, normalUuid, withName } from '../../placement/uuid.ts';
import { bySince } from '../../placement/versions.ts';
import { badRequest, notFound } from '../../request/errors.ts';
import { untilDone } from '../../request/until_done.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../../rest/endpoint.ts';
import { isStorable, timeText } from '../../text/strings.ts';
import { newest, preconditionFailed, requireMatch, tagged, takesIfMatch } from '../answers.ts';
import { contentOf, generationOfRow } from '../consumers/consumer.ts';
import type { Dependencies } from '../dependencies.ts';
import { besideConsumers, besideDryRun, consumersBodies, placedConsumers, putBodies } from './bodies.ts';
import { allocationsPhrase, malformedConsumer } from './claim_refusals.ts';
import {
  answerAfter,
  answerTo,
  asksForDryRun,
  consumerClaim,
  expectKnownOnly,
  requestedWait,
  waitFor,
  writeClaim,
} from './claim_requests.ts';
import { claimOf, claimRules, namingNewerFields } from './claim_rights.ts';
import { namingPlaces } from './misplaced_fields.ts';

// Routes

const one = { path: '/allocations/:consumer_uuid', since: since.firstVersion } as const;
const rule = (verb: string) => `placement:allocations:${verb}`;

export const allocationEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'POST',
    path: '/allocations',
    since: since.severalConsumers,
    policy: rule('manage'),
    ownerDecides: 'by the body',
    wantsJson: true,
    ...takesIfMatch,
    handle: post,
  },
  { ...one, method: 'GET', policy: rule('list'), ownerDecides: true, answersJson: true, handle: show },
  {
    ...one,
    method: 'PUT',
    policy: rule('update'),
    ownerDecides: 'by the body',
    wantsJson: true,
    ...takesIfMatch,
    handle: put,
  },
  { ...one, method: 'DELETE', policy: rule('delete'), ownerDecides: true, ...takesIfMatch, handle: remove },
];

// Request schemas

const postBodies = consumersBodies(1);

// Handlers

async function show(request: ApiRequest, { allocationReads, config }: Dependencies): Promise<Answer> {
  const held = await heldBy(request, allocationReads, config, { inFull: goesOn(request.version) });
  // A consumer without allocations does not exist, so it has no tag.
  if (held === undefined) return { status: 200, json: { allocations: {} }, lastModified: newest([]) };
  const { rows, content } = held;
  const byProvider = new Map<string, { resources: Record<string, number>; generation: number }>();
  for (const { provider_uuid, provider_generation, class_name, used } of rows) {
    const entry = byProvider.get(provider_uuid) ?? { resources: {}, generation: provider_generation };
    entry.resources[class_name] = used;
    byProvider.set(provider_uuid, entry);
  }
  const allocations = Object.fromEntries(byProvider);
  const lastModified = newest(rows.map(({ modified }) => modified ?? undefined));
  const [first] = rows;
  const { version } = request;
  const json = {
    allocations,
    ...(version >= since.teams ? { resource_providers: namesOf(byProvider.keys(), providersIn(rows)) } : {}),
    ...(version >= since.allocationsByProvider ? { project_id: content.projectId, user_id: content.userId } : {}),
    ...(version >= since.consumerGenerations ? { consumer_generation: generationOfRow(request, first) } : {}),
    ...(version >= since.consumerTypes ? { consumer_type: content.consumerType ?? unknownType } : {}),
    ...(version >= since.terms ? { expires_at: timeText(first.expires) } : {}),
    ...(version >= since.names ? { name: first.consumer_name } : {}),
  };
  return { status: 200, ...tagged(request, json, () => allocationsTag(content)), lastModified };
}

/**
 * The texts under which the consumer of the path may be stored. OpenStack's versions look for the text as it was sent, although their PUT
 * writes the usual spelling.
 */
const storedAs = (request: ApiRequest): readonly string[] =>
  spellingsAt(request.version, request.param('consumer_uuid'));

/** What the consumer of the path has; undefined if it has nothing, or belongs to an owner whose consumers the client may not see. */
async function heldBy(
  request: ApiRequest,
  allocationReads: Dependencies['allocationReads'],
  config: Dependencies['config'],
  options?: Parameters<typeof allocationReads.ofConsumer>[1],
) {
  for (const uuid of storedAs(request)) {
    const [first, ...others] = await allocationReads.ofConsumer(uuid, options);
    if (first === undefined) continue;
    const rows = [first, ...others] as const;
    const content = contentOf(rows, config);
    if (content !== undefined && request.owners?.(content) !== false) return { uuid, rows, content };
  }
  return undefined;
}

async function put(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const rules = await rulesOf(request, rule('update'));
  const seconds = requestedWait(request, dependencies.config);
  const uuid = request.param('consumer_uuid');
  if (!isUuidLike(uuid)) throw malformedConsumer(uuid);
  const body = await naming(request, () => request.json(bySince(putBodies, request.version)));
  const isDryRun = asksForDryRun(body);
  return answerTo(isDryRun, async () => {
    const consumer = consumerClaim(normalUuid(uuid), body, request, dependencies.config);
    const line = 'line' in body ? body.line : undefined;
    const wait = waitFor(request, [consumer], { seconds, rule: rule('update'), line, isDryRun }, dependencies);
    return answerAfter(wait, async () => {
      const outcome = await writeClaim(
        request,
        dependencies,
        claimOf([consumer], request, rules, dependencies.config),
        {
          isDryRun,
          wait,
          notFound: `Unable to allocate inventory for consumer ${withName(consumer.uuid, consumer.name)}:`,
        },
      );
      const [placed] = outcome.consumers;
      if (placed === undefined) return noContent; // a plain claim; the consumers of a claim by query are in the outcome
      return { status: 200, json: outcomeJson(placed, outcome, request), etag: placed.etag ?? undefined };
    });
  });
}

async function post(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const rules = await rulesOf(request, rule('manage'));
  const seconds = requestedWait(request, dependencies.config);
  const body = await naming(request, () => postBody(request), namingPlaces);
  const { isDryRun, line } = body;
  return answerTo(isDryRun, async () => {
    const keys = new Map<string, string>();
    const consumers = expectKnownOnly(
      Object.entries(body.consumers).map(([key, consumer]) =>
        consumerClaim(noteUuid(key, keys, request), consumer, request, dependencies.config),
      ),
    );
    if (request.ifMatch !== undefined && consumers.every(({ expected }) => expected === undefined)) {
      throw preconditionFailed('What consumers have of which all are new');
    }
    const claim = claimOf(consumers, request, rules, dependencies.config);
    const wait = waitFor(request, consumers, { seconds, rule: rule('manage'), line, isDryRun }, dependencies);
    return answerAfter(wait, async () => {
      const writing = { isDryRun, wait, notFound: 'Unable to allocate inventory' };
      const outcome = await writeClaim(request, dependencies, claim, writing);
      if (!isByQuery(claim)) return noContent;
      return {
        status: 200,
        json: Object.fromEntries(
          outcome.consumers.map((each) => [keys.get(each.uuid) ?? each.uuid, outcomeJson(each, outcome, request)]),
        ),
      };
    });
  });
}

/**
 * The UUID under which the consumer of a key in the body of POST is stored: the usual spelling, as by PUT. Otherwise a PUT that repeats
 * such a claim would make another consumer. OpenStack's versions store each key as it is.
 *
 * @param keys gets the key by this UUID
 * @throws ApiError 400 for a key that is no UUID, or the UUID of an earlier key
 */
function noteUuid(key: string, keys: Map<string, string>, { version }: ApiRequest): string {
  if (version < since.entityTags) return key;
  if (!isUuidLike(key)) throw malformedConsumer(key);
  const uuid = normalUuid(key);
  const other = keys.get(uuid);
  if (other !== undefined) throw badRequest(`The body has consumer ${uuid} twice, as '${other}' and as '${key}'.`);
  keys.set(uuid, key);
  return uuid;
}

/** The rules for the claim of a request. @throws ApiError 403 */
async function rulesOf(request: ApiRequest, name: string) {
  try {
    return claimRules(request, name);
  } catch (error) {
    throw namingNewerFields(
      request,
      error,
      await request.json(v.record(v.string(), v.unknown())).catch(() => undefined),
    );
  }
}

/**
 * Reads a body. From 2.1 on the error for a field of a newer version names that version; OpenStack's errors stay as they are.
 *
 * @param otherwise what else can be said about the error, if no field is of a newer version
 */
async function naming<T>(
  request: ApiRequest,
  read: () => Promise<T>,
  otherwise = (error: unknown, _body: unknown): unknown => error,
): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (request.version < since.entityTags) throw error;
    const body = shortBody(request);
    const named = namingNewerFields(request, error, body);
    throw named === error ? otherwise(error, body) : named;
  }
}

/** The body that was read, for an error; undefined where it is no JSON, or so long that parsing it again would delay other requests. */
function shortBody(request: ApiRequest): unknown {
  try {
    const text = request.bodyText();
    return text.length > 16_384 ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

async function postBody(request: ApiRequest) {
  if (request.version < since.placing) {
    return {
      isDryRun: false,
      line: undefined,
      consumers: await request.json(bySince(postBodies, request.version)),
    };
  }
  const { dry_run: dryRun, ...beside } = await request.json(besideDryRun);
  const { line, consumers } = await withLine(request, beside);
  return {
    isDryRun: dryRun === true,
    line,
    consumers: await request.check(consumers, bySince(placedConsumers, request.version)),
  };
}

/** Separates the line from the consumers of a body. */
async function withLine(request: ApiRequest, body: Readonly<Record<string, unknown>>) {
  if (request.version < since.waiting || !('line' in body)) return { line: undefined, consumers: body };
  const { line, ...consumers } = body;
  return { ...(await request.check({ line }, besideConsumers)), consumers };
}

async function remove(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  return untilDone(async () => {
    try {
      if (request.ifMatch === undefined && request.owners === undefined) await removeAny(request, dependencies);
      else if (!(await removeSeen(request, dependencies))) return undefined;
      return noContent;
    } catch (error) {
      // A transaction that lost a race has deleted nothing.
      if (failureKind(error) === 'lost race') return undefined;
      throw error;
    }
  });
}

const nothingToDelete = (request: ApiRequest) =>
  notFound(`No allocations for consumer '${request.param('consumer_uuid')}'`);

async function removeAny(request: ApiRequest, { deletions }: Dependencies): Promise<void> {
  for (const uuid of storedAs(request)) if (isStorable(uuid) && (await deletions.delete(uuid)) > 0) return;
  throw nothingToDelete(request);
}

/**
 * Deletes what was seen to match, and to belong to an owner whose consumers the client may delete.
 *
 * @returns false if another request changed the allocations after this request had read them: both must be checked again
 */
async function removeSeen(
  request: ApiRequest,
  { database, fleet, waiting, allocationReads, config }: Dependencies,
): Promise<boolean> {
  const held = await heldBy(request, allocationReads, config);
  if (held === undefined) throw nothingToDelete(request);
  const { uuid, rows, content } = held;
  requireMatch(request, allocationsPhrase(uuid), () => allocationsTag(content));
  const seen = { generation: rows[0].consumer_generation, allocations: rows };
  const count = await deleteSeenAllocations(database, uuid, seen, fleet.known.limits.isCounting);
  waiting.noteWrite();
  return count > 0;
}

/** A consumer after a claim, as GET shows it, and the mappings of a consumer by query. */
function outcomeJson(
  { allocations, mappings, projectId, userId, generation, consumerType, name, etag, expiresAtMs }: ConsumerOutcome,
  { providers }: ClaimOutcome,
  { version }: Pick<ApiRequest, 'version'>,
): object {
  if (allocations.size === 0) return { allocations: {} };
  return {
    allocations: Object.fromEntries(
      Array.from(allocations, ([uuid, resources]) => [
        uuid,
        { resources: Object.fromEntries(resources), generation: providers.get(uuid)?.generation },
      ]),
    ),
    ...(mappings === undefined ? {} : { mappings: Object.fromEntries(mappings) }),
    ...(version >= since.teams ? { resource_providers: namesOf(allocations.keys(), providers) } : {}),
    project_id: projectId,
    user_id: userId,
    consumer_generation: generation,
    consumer_type: consumerType ?? unknownType,
    etag,
    ...(version >= since.terms ? { expires_at: timeText(expiresAtMs === null ? null : new Date(expiresAtMs)) } : {}),
    ...(version >= since.names ? { name } : {}),
  };
}

/** The providers of allocations, as the outcome of a claim has them. */
const providersIn = (rows: readonly ConsumerAllocationRow[]): ClaimOutcome['providers'] =>
  new Map(
    rows.map(({ provider_uuid: uuid, provider_generation: generation, provider_name: name, root_uuid: root }) => [
      uuid,
      { generation, name: name ?? '', root: root ?? uuid },
    ]),
  );

/** The names of providers, and the roots of their trees, by UUID: they may have changed before a client could read them itself. */
const namesOf = (uuids: Iterable<string>, providers: ClaimOutcome['providers']): object =>
  Object.fromEntries(
    Array.from(uuids, (uuid) => {
      const { name, root } = providers.get(uuid) ?? {};
      return [uuid, { name, root }];
    }),
  );
