import * as v from 'valibot';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import { type ListedWaiting, listWaiting, removeWaiting, waitingOf } from '../../db/statements/claims/waiting.ts';
import { since } from '../placement/microversions.ts';
import { spellingsOf } from '../placement/uuid.ts';
import { notFound } from '../request/errors.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../rest/endpoint.ts';
import { object } from '../rest/json_schema.ts';
import { checkUnrepeated, integerParameter } from '../rest/schema_check.ts';
import { isStorable, timeText } from '../text/strings.ts';
import { lineName, ownerId } from './allocations/bodies.ts';
import { pageJson, usualLimit } from './answers.ts';
import type { Dependencies } from './dependencies.ts';

// Routes

const path = '/waiting';
const shared = { since: since.waiting } as const;
const listRule = 'placement:waiting:list';

export const waitingEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    ...shared,
    method: 'GET',
    path,
    policy: listRule,
    policyTarget: ({ query }) => ({ project_id: query().last('project_id') ?? null }),
    answersJson: true,
    takesParameters: true,
    handle: list,
  },
  {
    ...shared,
    method: 'DELETE',
    path: `${path}/:consumer`,
    policy: 'placement:waiting:delete',
    ownerDecides: true,
    handle: remove,
  },
];

// Request schemas

const parameters = object({
  project_id: v.optional(ownerId),
  line: v.optional(lineName),
  limit: v.optional(integerParameter(1, 1000)),
  marker: v.optional(integerParameter(0, Number.MAX_SAFE_INTEGER)),
});

// Handlers

async function list(request: ApiRequest, { database }: Dependencies): Promise<Answer> {
  const requested = checkUnrepeated(request.query(), parameters);
  const { project_id: projectId, line, limit = usualLimit, marker: after = -1 } = requested;
  // A claim is listed for a project if the rule allows the owners of all its consumers.
  const isOnlyOfProject = request.allowedOwners(listRule) !== undefined;
  const selection = { projectId, isOnlyOfProject, line, after, limit: limit + 1 };
  const found = await repeatLostRaces(() => listWaiting(database, selection));
  const json = pageJson(request, path, found, {
    limit,
    represent: (claim) => represent(claim, request),
    markerOf: ({ number }) => String(number),
  });
  return { status: 200, json, lastModified: new Date() };
}

async function remove(request: ApiRequest, { database }: Dependencies): Promise<Answer> {
  const consumer = request.param('consumer');
  const spellings = spellingsOf(consumer).filter(isStorable);
  const found = await repeatLostRaces(() => waitingOf(database, spellings));
  const visible = found.filter(({ owners }) => owners.every((owner) => request.owners?.(owner) !== false));
  if (visible.length === 0 || (await removeWaiting(database, visible)) === 0) {
    throw notFound(`No claim of consumer '${consumer}' waits`);
  }
  return noContent;
}

// Response shapes

const represent = (
  { consumers, names, projectId, userId, since: began, until, ...rest }: ListedWaiting,
  { version }: ApiRequest,
): object => ({
  number: rest.number,
  consumers,
  ...(version >= since.names ? { names: names ?? consumers.map(() => null) } : {}),
  project_id: projectId,
  user_id: userId,
  since: timeText(began),
  until: timeText(until),
  line: rest.line,
  place: rest.place,
  waits_for: rest.waitsFor,
  condition: rest.condition,
});
