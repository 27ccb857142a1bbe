import * as v from 'valibot';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import { readUsages, type UsageRow } from '../../db/statements/claims/read_usages.ts';
import { nameOf } from '../fleet/model/names.ts';
import { incompleteOwner } from '../placement/consumer.ts';
import { since } from '../placement/microversions.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { object, text } from '../rest/json_schema.ts';
import { refuseRepeats } from '../rest/query_string.ts';
import { checkQuery } from '../rest/schema_check.ts';
import { ownerId } from './allocations/bodies.ts';
import { changesToken } from './answers.ts';
import type { Dependencies } from './dependencies.ts';
import { findShownProvider } from './resource_providers/provider.ts';

// Routes

export const usageEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/resource_providers/:uuid/usages',
    since: since.firstVersion,
    policy: 'placement:resource_providers:usages',
    answersJson: true,
    handle: ofProvider,
  },
  {
    method: 'GET',
    path: '/usages',
    since: since.projectUsages,
    policy: 'placement:usages',
    policyTarget: ({ query }) => ({ project_id: query().last('project_id') ?? null }),
    answersJson: true,
    takesParameters: true,
    handle: ofProject,
  },
];

// Request schemas

const query = { project_id: ownerId, user_id: v.optional(ownerId) };
const untyped = object(query);
// The pattern is upstream's, in which a text need only begin with `all`.
const consumerType = text({ minLength: 1, maxLength: 255, pattern: /^[A-Z0-9_]+$|^all|^unknown$/ });
const typed = object({ ...query, consumer_type: v.optional(consumerType) });

// Handlers

async function ofProvider(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const current = await fleet.fresh();
  const provider = findShownProvider(current, request.param('uuid'));
  return {
    status: 200,
    json: {
      resource_provider_generation: provider.generation,
      usages: Object.fromEntries(
        provider.inventories.map(({ fields, used }) => [nameOf(current.classes, fields.classId), used]),
      ),
    },
    lastModified: new Date(),
    ...changesToken(request, fleet),
  };
}

async function ofProject(request: ApiRequest, { config, database }: Dependencies): Promise<Answer> {
  const grouped = request.version >= since.consumerTypes;
  const values: v.InferOutput<typeof typed> = checkQuery(request.query(), grouped ? typed : untyped);
  refuseRepeats(request.query(), request.version);
  const filter = {
    projectId: values.project_id,
    userId: values.user_id,
    consumerType: grouped ? values.consumer_type : 'all',
    incomplete: incompleteOwner(config),
  };
  const rows = await repeatLostRaces(() => readUsages(database, filter));
  const usages = Object.fromEntries(
    Array.from(Map.groupBy(rows, typeOf), ([type, group]) => [
      type,
      Object.fromEntries([
        ...(grouped ? group.slice(0, 1).map(({ consumer_count }) => ['consumer_count', consumer_count]) : []),
        ...group.map(({ class_name, used }) => [class_name, used]),
      ]),
    ]),
  );
  return { status: 200, json: { usages: grouped ? usages : (usages.all ?? {}) }, lastModified: new Date() };
}

const typeOf = ({ consumer_type }: UsageRow): string => consumer_type;
