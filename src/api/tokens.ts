import * as v from 'valibot';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import { deleteToken, listTokens } from '../../db/statements/tokens.ts';
import { issueToken, showToken } from '../access/tokens/stored_tokens.ts';
import { since } from '../placement/microversions.ts';
import { normalUuid } from '../placement/uuid.ts';
import { notFound } from '../request/errors.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../rest/endpoint.ts';
import { integer, list as listOf, object, text } from '../rest/json_schema.ts';
import { checkUnrepeated } from '../rest/schema_check.ts';
import { isStorable } from '../text/strings.ts';
import { ownerId } from './allocations/bodies.ts';
import { checkMarker, pageJson, pageParameters, usualLimit } from './answers.ts';
import type { Dependencies } from './dependencies.ts';

// Routes

const path = '/tokens';
const one = `${path}/:id`;
const shared = { since: since.teams, answersJson: true } as const;
const rule = (verb: string) => `placement:tokens:${verb}`;

export const tokenEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...shared, method: 'GET', path, policy: rule('list'), takesParameters: true, handle: list },
  { ...shared, method: 'POST', path, policy: rule('create'), wantsJson: true, handle: create },
  { ...shared, method: 'DELETE', path: one, answersJson: false, policy: rule('delete'), handle: remove },
];

// Request schemas

const listParameters = object({
  project_id: v.optional(ownerId),
  user_id: v.optional(ownerId),
  ...pageParameters(1000),
});

/** A policy can only name roles of one word. */
const role = text({ minLength: 1, maxLength: 255, pattern: /^[^\s,]+$/ });
const mostRoles = 100;

/** Some ten years. */
const longestSeconds = 315_360_000;
const newToken = object({
  user_id: ownerId,
  project_id: ownerId,
  roles: listOf(role, { minItems: 1, maxItems: mostRoles, unique: true }),
  expires_in: v.optional(integer({ minimum: 1, maximum: longestSeconds, unit: 'seconds' })),
});

// Handlers

async function list(request: ApiRequest, { database }: Dependencies): Promise<Answer> {
  const query = checkUnrepeated(request.query(), listParameters);
  const { limit = usualLimit, marker, project_id: projectId, user_id: userId } = query;
  checkMarker(marker, () => false);
  const filter = { projectId, userId, marker: marker === undefined ? undefined : normalUuid(marker), limit };
  const found = await repeatLostRaces(() => listTokens(database, filter));
  const json = pageJson(request, path, found, { limit, represent: showToken, markerOf: ({ uuid }) => uuid });
  return { status: 200, json, lastModified: new Date() };
}

/** Only this answer ever shows the token itself. */
async function create(request: ApiRequest, { database, logger }: Dependencies): Promise<Answer> {
  const { user_id: userId, project_id: projectId, roles, expires_in: seconds } = await request.json(newToken);
  const { text: token, shown } = await issueToken(database, { userId, projectId, roles, seconds });
  const { userId: by } = request.identity;
  logger.info({ token: shown.id, user: userId, project: projectId, roles, by }, 'A token was created');
  return {
    status: 201,
    json: { ...shown, token },
    location: `${path}/${shown.id}`,
    headers: { 'cache-control': 'no-store' },
  };
}

async function remove(request: ApiRequest, { database, logger }: Dependencies): Promise<Answer> {
  const uuid = request.param('id');
  if (!isStorable(uuid) || !(await deleteToken(database, normalUuid(uuid))))
    throw notFound(`There is no token ${uuid}.`);
  logger.info({ token: normalUuid(uuid), by: request.identity.userId }, 'A token was revoked');
  return noContent;
}
