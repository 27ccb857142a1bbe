import * as v from 'valibot';
import { isDatabaseError } from '../../db/engine/failures.ts';
import { deleteService } from '../../db/statements/services/delete_service.ts';
import { computeBinary, type KnownService } from '../../db/statements/services/service_row.ts';
import { bySince } from '../placement/versions.ts';
import { badRequest, conflict, notFound } from '../request/errors.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../rest/endpoint.ts';
import { either, list as items, object, text } from '../rest/json_schema.ts';
import { listInTurns } from '../rest/made_in_turns.ts';
import type { ComputeDependencies } from './dependencies.ts';
import { changeService, runAction } from './service_updates.ts';
import { findServices, serviceView } from './service_view.ts';
import { hostName, integerId, readQuery, readUuid, shortText } from './validation.ts';
import { since } from './versions.ts';

// Routes

const rule = (verb: string) => `os_compute_api:os-services:${verb}`;
const all = { path: '/compute/v2.1/os-services', since: since.firstVersion } as const;
const one = { path: '/compute/v2.1/os-services/:service_id', since: since.firstVersion } as const;

export const serviceEndpoints: readonly Endpoint<ComputeDependencies>[] = [
  { ...all, method: 'GET', policy: rule('list'), handle: list },
  { ...all, method: 'POST', policy: rule('create'), quiet: true, handle: register },
  { ...one, method: 'PUT', until: since.uuids - 1, policy: rule('update'), handle: runAction },
  { ...one, method: 'PUT', since: since.uuids, policy: rule('update'), handle: changeService },
  { ...one, method: 'DELETE', policy: rule('delete'), handle: remove },
];

// Request schemas

const listQuery = { parameters: { host: text(), binary: text() }, repeatable: true } as const;

const listQueries = [
  { since: since.strictQueries, schema: { ...listQuery, others: 'refused' } },
  { since: since.firstVersion, schema: { ...listQuery, others: 'ignored' } },
] as const;

const registration = object({
  host: hostName,
  binary: shortText,
  cell: v.optional(shortText, 'default'),
  zone: v.optional(shortText),
  topic: v.optional(shortText),
  uptime: v.optional(shortText),
});

const registrations = either('services', object({ services: items(registration, { minItems: 1 }) }), registration);

// Handlers

async function list(request: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const { version } = request;
  const { host, binary } = readQuery(request.query(), bySince(listQueries, version));
  // An empty filter is ignored.
  const filter = { host: host || undefined, binary: binary || undefined };
  const services = await findServices(dependencies, filter);
  const textOf = (service: KnownService): string => JSON.stringify(serviceView(service, version));
  return { status: 200, ...(await listInTurns(request, 'services', services, textOf)) };
}

/**
 * Nova has no such request: its services write the database themselves. A request may be for one service or for many;
 * one request for many saves most of the cost of heartbeats, which is HTTP.
 */
async function register(request: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const body = await request.json(registrations);
  if ('services' in body) {
    const settled = await Promise.allSettled(body.services.map((each) => registerOne(each, dependencies)));
    const refused = settled.find((result) => result.status === 'rejected');
    if (refused !== undefined) throw refused.reason;
    const known = settled.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    return { status: 200, json: { services: known.map((service) => serviceView(service, request.version)) } };
  }
  const service = await registerOne(body, dependencies);
  return { status: 200, json: { service: serviceView(service, request.version) } };
}

/** @throws ApiError 409 where another cell has the host. */
async function registerOne(
  { host, binary, cell, zone, topic, uptime }: v.InferOutput<typeof registration>,
  { heartbeats }: ComputeDependencies,
): Promise<KnownService> {
  try {
    return await heartbeats.beat({ host, binary, cell, zone, topic, uptime });
  } catch (error) {
    if (!isDatabaseError(error) || error.constraint !== 'uniq_services0compute_host') throw error;
    throw conflict(`Host ${host} has a ${computeBinary} service in another cell than ${cell}. Delete that one first.`);
  }
}

async function remove(request: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const id = request.param('service_id');
  const filter = request.version >= since.uuids ? { uuid: readUuid(id) } : { id: integerOf(id) };
  const [service, ...others] = await findServices(dependencies, filter);
  if (others.length > 0) throw badRequest(`Service id ${id} refers to multiple services.`);
  const outcome = service === undefined ? 'gone' : await deleteService(dependencies.database, service);
  if (outcome === 'gone') throw notFound(`Service ${id} not found.`);
  if (outcome === 'hosting') {
    throw conflict(
      'Unable to delete compute service that is hosting instances. Migrate or delete the instances first.',
    );
  }
  return noContent;
}

function integerOf(id: string): number {
  const integer = integerId(id);
  if (integer === undefined) throw badRequest('Invalid input received: id must be an integer');
  return integer;
}
