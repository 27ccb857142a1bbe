import * as v from 'valibot';
import {
  badRequest,
  concurrentlyUpdated,
  conflict,
  errorCodes,
  noSuchClass,
  notFound,
  notFoundWithoutVary,
} from '../errors.ts';
import type { Fleet } from '../fleet/fleet.ts';
import { inventoryOf, type Provider } from '../fleet/provider.ts';
import { integer, object, text } from '../schema/json_schema.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from './endpoint.ts';
import { echoedTag, takesIfMatch } from './entity_tags.ts';
import { listAnswer, oneAnswer } from './inventory_answers.ts';
import {
  checkCapacity,
  classNamePattern,
  inventoryEntries,
  inventoryFields,
  providerInventoriesBodies,
} from './inventory_body.ts';
import {
  checkGeneration,
  inUseAmong,
  requireInventories,
  requireInventory,
  updateConflict,
} from './inventory_checks.ts';
import { changeInventories, inventoriesWrite } from './inventory_writes.ts';
import { providerBody, writeJudged } from './judged_writes.ts';
import type { Parts } from './parts.ts';
import { findProvider, noSuchProvider } from './provider.ts';
import { bySince } from './since.ts';

// Routes

const path = '/resource_providers/:uuid/inventories';
const one = `${path}/:resource_class`;
const rule = (verb: string) => `placement:resource_providers:inventories:${verb}`;

export const inventoryEndpoints: readonly Endpoint[] = [
  { method: 'GET', path, since: 0, policy: rule('list'), answersJson: true, handle: list },
  { method: 'POST', path, since: 0, policy: rule('create'), wantsJson: true, ...takesIfMatch, handle: create },
  { method: 'PUT', path, since: 0, policy: rule('update'), wantsJson: true, ...takesIfMatch, handle: replaceAll },
  { method: 'DELETE', path, since: 5, absentStatus: 405, policy: rule('delete'), ...takesIfMatch, handle: removeAll },
  { method: 'GET', path: one, since: 0, policy: rule('show'), answersJson: true, handle: show },
  { method: 'PUT', path: one, since: 0, policy: rule('update'), wantsJson: true, ...takesIfMatch, handle: replaceOne },
  { method: 'DELETE', path: one, since: 0, policy: rule('delete'), ...takesIfMatch, handle: removeOne },
];

// Request schemas

const creation = object({
  ...inventoryEntries,
  resource_provider_generation: v.optional(integer()),
  resource_class: text({ pattern: classNamePattern }),
});
const replacement = { ...inventoryEntries, resource_provider_generation: integer() };
const replacementSchemas = [
  { since: 40, schema: object({ ...replacement, ...echoedTag }) },
  { since: 0, schema: object(replacement) },
] as const;

// Handlers

async function list(request: ApiRequest, { fleet }: Parts): Promise<Answer> {
  const current = await fleet.fresh();
  return listAnswer(request, readProvider(current, request), current);
}

async function show(request: ApiRequest, { fleet }: Parts): Promise<Answer> {
  const current = await fleet.fresh();
  const provider = readProvider(current, request);
  const name = request.param('resource_class');
  const inventory = inventoryOf(provider, current.classes.byName.get(name)?.id ?? -1);
  if (inventory === undefined) throw notFound(`No inventory of class ${name} for ${provider.uuid}`);
  return oneAnswer(request, 200, provider, inventory);
}

async function create(request: ApiRequest, parts: Parts): Promise<Answer> {
  const uuid = request.param('uuid');
  let current = await parts.fleet.fresh();
  findProvider(current, uuid);
  const body = await request.json(creation);
  const fields = inventoryFields(body);
  const refused = (reason: string) => badRequest(`Unable to create inventory for resource provider ${uuid}: ${reason}`);
  checkCapacity([[body.resource_class, fields]], uuid, request.version, refused);
  // The generation of the body is ignored, as upstream does: whichever is current guards the write.
  for (; ; current = await parts.fleet.fresh()) {
    const provider = findProvider(current, uuid);
    requireInventories(request, provider, current);
    const classId = current.classes.byName.get(body.resource_class)?.id;
    if (classId === undefined) throw refused(noSuchClass(body.resource_class));
    if (inventoryOf(provider, classId) !== undefined) {
      throw conflict(
        `Update conflict: inventory of ${body.resource_class} already exists for resource provider ${uuid}.`,
        errorCodes.concurrentUpdate,
      );
    }
    const shown = await changeInventories(
      parts,
      provider,
      [{ classId, className: body.resource_class, ...fields }],
      [],
    );
    if (shown !== undefined) {
      const written = writtenInventory(shown, uuid, classId);
      const location = `/resource_providers/${uuid}/inventories/${body.resource_class}`;
      return { ...oneAnswer(request, 201, written.provider, written.inventory), location };
    }
  }
}

async function replaceAll(request: ApiRequest, parts: Parts): Promise<Answer> {
  const uuid = request.param('uuid');
  const body = await providerBody(parts, request, bySince(providerInventoriesBodies, request.version));
  const put = Object.entries(body.inventories).map(([name, record]) => [name, inventoryFields(record)] as const);
  const done = await writeJudged(parts, request, (fleet) => {
    const provider = findProvider(fleet, uuid);
    requireInventories(request, provider, fleet);
    checkGeneration(provider, body.resource_provider_generation);
    checkCapacity(put, uuid, request.version, (reason) =>
      badRequest(`Unable to update inventory for resource provider ${uuid}: ${reason}`),
    );
    const values = put.map(([name, fields]) => {
      const classId = fleet.classes.byName.get(name)?.id;
      if (classId === undefined) {
        throw badRequest(`Unknown resource class in inventory for resource provider ${uuid}: ${noSuchClass(name)}`);
      }
      return { classId, className: name, ...fields };
    });
    const kept = new Set(values.map(({ classId }) => classId));
    const removed = provider.inventories.filter(({ classId }) => !kept.has(classId));
    const inUse = inUseAmong(removed, provider, fleet);
    if (inUse !== undefined) throw conflict(`update conflict: ${inUse}`, errorCodes.inventoryInUse);
    return { write: inventoriesWrite(parts, provider, values, removed) };
  });
  if (done !== undefined) return listAnswer(request, findProvider(done.shown, uuid), done.shown);
  const after = await parts.fleet.fresh();
  requireInventories(request, findProvider(after, uuid), after);
  throw updateConflict();
}

async function removeAll(request: ApiRequest, parts: Parts): Promise<Answer> {
  for (;;) {
    const current = await parts.fleet.fresh();
    const provider = findProvider(current, request.param('uuid'));
    requireInventories(request, provider, current);
    const inUse = inUseAmong(provider.inventories, provider, current);
    if (inUse !== undefined) throw conflict(inUse, errorCodes.inventoryInUse);
    if (await changeInventories(parts, provider, [], provider.inventories)) return noContent;
    // Who said what is to be deleted is concerned by another content only, and not by another generation.
    if (request.ifMatch !== undefined) continue;
    throw conflict(
      `Unable to delete inventory for resource provider ${provider.uuid} because the inventory was updated by another ` +
        'process. Please retry your request.',
      errorCodes.concurrentUpdate,
    );
  }
}

async function replaceOne(request: ApiRequest, parts: Parts): Promise<Answer> {
  const uuid = request.param('uuid');
  const name = request.param('resource_class');
  const body = await providerBody(parts, request, bySince(replacementSchemas, request.version));
  const fields = inventoryFields(body);
  const done = await writeJudged(parts, request, (fleet) => {
    const provider = findProvider(fleet, uuid);
    requireInventory(request, provider, fleet);
    checkGeneration(provider, body.resource_provider_generation);
    checkCapacity([[name, fields]], uuid, request.version, (reason) =>
      badRequest(`Unable to update inventory for resource provider ${uuid}: ${reason}`),
    );
    const classId = fleet.classes.byName.get(name)?.id;
    // Upstream lets an unknown class pass as an error of its own, without Vary.
    if (classId === undefined) throw notFoundWithoutVary(noSuchClass(name));
    if (inventoryOf(provider, classId) === undefined) {
      throw badRequest(
        `No inventory record with resource class for resource provider ${uuid}: No inventory of class ${name} found.`,
      );
    }
    return { classId, write: inventoriesWrite(parts, provider, [{ classId, className: name, ...fields }], []) };
  });
  if (done === undefined) {
    const after = await parts.fleet.fresh();
    requireInventory(request, findProvider(after, uuid), after);
    throw updateConflict();
  }
  const written = writtenInventory(done.shown, uuid, done.plan.classId);
  return oneAnswer(request, 200, written.provider, written.inventory);
}

async function removeOne(request: ApiRequest, parts: Parts): Promise<Answer> {
  const name = request.param('resource_class');
  const missing = (reason: string) => notFound(`No inventory of class ${name} found for delete: ${reason}`);
  const refused = (reason: string) =>
    conflict(`Unable to delete inventory of class ${name}: ${reason}`, errorCodes.concurrentUpdate);
  for (;;) {
    const current = await parts.fleet.fresh();
    const provider = findProvider(current, request.param('uuid'));
    const classId = current.classes.byName.get(name)?.id;
    if (classId === undefined) throw missing(noSuchClass(name));
    const inventory = inventoryOf(provider, classId);
    if (inventory === undefined) throw missing(`No inventory of class ${name} found for delete`);
    requireInventory(request, provider, current);
    const inUse = inUseAmong([inventory], provider, current);
    if (inUse !== undefined) throw refused(inUse);
    if (await changeInventories(parts, provider, [], [inventory])) return noContent;
    if (request.ifMatch === undefined) throw refused(concurrentlyUpdated);
  }
}

// Providers and inventories

/** The provider of a read; upstream words its absence in a way of its own here. */
function readProvider(fleet: Fleet, request: ApiRequest): Provider {
  const uuid = request.param('uuid');
  const provider = fleet.byUuid.get(uuid);
  if (provider === undefined) throw notFound(`${noSuchProvider(uuid)} : ${noSuchProvider(uuid)}`);
  return provider;
}

function writtenInventory(shown: Fleet, uuid: string, classId: number) {
  const provider = findProvider(shown, uuid);
  const inventory = inventoryOf(provider, classId);
  if (inventory === undefined) throw updateConflict(); // somebody removed it again already
  return { provider, inventory };
}
