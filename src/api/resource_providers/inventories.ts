import * as v from 'valibot';
import type { ProviderWrite } from '../../../db/statements/providers/provider_write.ts';
import { inventoriesTagOf, inventoryTagOf } from '../../fleet/model/entity_tags.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import { nameOf } from '../../fleet/model/names.ts';
import { type FieldsOfClass, type Inventory, inventoryOf, type Provider } from '../../fleet/model/provider.ts';
import { inventoriesTag, inventoryTag } from '../../placement/entity_tag.ts';
import { classNamePattern } from '../../placement/inventory.ts';
import { since } from '../../placement/microversions.ts';
import { bySince } from '../../placement/versions.ts';
import {
  ApiError,
  badRequest,
  concurrentlyUpdated,
  conflict,
  errorCodes,
  inventoryInUse,
  noSuchClass,
  notFound,
  notFoundWithoutVary,
  unknownClass,
} from '../../request/errors.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { integer, object, text } from '../../rest/json_schema.ts';
import { changesToken, echoedTag, requireMatch, takesIfMatch } from '../answers.ts';
import type { Dependencies } from '../dependencies.ts';
import {
  asWritten,
  checkCapacity,
  inventoryEntries,
  inventoryFields,
  listAnswer,
  oneAnswer,
  providerInventoriesBodies,
  writtenNumbers,
} from './inventory_bodies.ts';
import { deleteJudged, providerBody, requireGeneration, writeJudged } from './judged_writes.ts';
import { findProvider, findShownProvider } from './provider.ts';

// Routes

const path = '/resource_providers/:uuid/inventories';
const all = { path, since: since.firstVersion } as const;
const one = { path: `${path}/:resource_class`, since: since.firstVersion } as const;
const rule = (verb: string) => `placement:resource_providers:inventories:${verb}`;

export const inventoryEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...all, method: 'GET', policy: rule('list'), answersJson: true, handle: list },
  { ...all, method: 'POST', policy: rule('create'), wantsJson: true, ...takesIfMatch, handle: create },
  { ...all, method: 'PUT', policy: rule('update'), wantsJson: true, ...takesIfMatch, handle: replaceAll },
  {
    method: 'DELETE',
    path,
    since: since.inventoriesDeletion,
    absentStatus: 405,
    policy: rule('delete'),
    ...takesIfMatch,
    handle: removeAll,
  },
  { ...one, method: 'GET', policy: rule('show'), answersJson: true, handle: show },
  { ...one, method: 'PUT', policy: rule('update'), wantsJson: true, ...takesIfMatch, handle: replaceOne },
  { ...one, method: 'DELETE', policy: rule('delete'), ...takesIfMatch, handle: removeOne },
];

// Request schemas

const creation = object({
  ...inventoryEntries,
  resource_provider_generation: v.optional(integer()),
  resource_class: text({ pattern: classNamePattern }),
});
const replacement = { ...inventoryEntries, resource_provider_generation: integer() };
const replacementSchemas = [
  { since: since.entityTags, schema: object({ ...replacement, ...echoedTag }) },
  { since: since.firstVersion, schema: object(replacement) },
] as const;

// Handlers

async function list(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const current = await fleet.fresh();
  return { ...listAnswer(request, shownProvider(current, request), current), ...changesToken(request, fleet) };
}

async function show(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const current = await fleet.fresh();
  const provider = shownProvider(current, request);
  const name = request.param('resource_class');
  const inventory = inventoryOf(provider, current.classes.byName.get(name)?.id ?? -1);
  if (inventory === undefined) throw notFound(`No inventory of class ${name} for ${provider.uuid}`);
  return { ...oneAnswer(request, 200, provider, inventory), ...changesToken(request, fleet) };
}

async function create(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const uuid = request.param('uuid');
  findProvider(await dependencies.fleet.fresh(), uuid);
  const body = await request.json(creation);
  const fields = inventoryFields(body);
  const numbers = writtenNumbers(request.bodyText())();
  checkCapacity([[body.resource_class, fields]], uuid, request.version, 'create');
  // The generation of the body is ignored, as in upstream: the current one guards the write.
  const { plan, shown } = await writeJudged(dependencies, request, (provider, fleet) => {
    requireInventories(request, provider, fleet);
    const classId = fleet.classes.byName.get(body.resource_class)?.id;
    if (classId === undefined) throw unknownClassIn('Unable to create inventory', uuid, body.resource_class, fleet);
    if (inventoryOf(provider, classId) !== undefined) {
      throw conflict(
        `Update conflict: inventory of ${body.resource_class} already exists for resource provider ${uuid}.`,
        errorCodes.concurrentUpdate,
      );
    }
    const put = [{ classId, className: body.resource_class, ...fields, numbers }];
    return { generation: provider.generation, put, write: inventoriesWrite(fleet, provider, put, []) };
  });
  const location = `/resource_providers/${encodeURIComponent(uuid)}/inventories/${body.resource_class}`;
  return { ...writtenAnswer(request, 201, asWritten(shown, uuid, plan.generation, plan.put)), location };
}

function unknownClassIn(problem: string, uuid: string, name: string, { classes }: Pick<Fleet, 'classes'>): ApiError {
  const beginning = `${problem} for resource provider ${uuid}: `;
  return new ApiError(400, beginning + noSuchClass(name), { sentence: beginning + unknownClass(name, classes) });
}

async function replaceAll(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const uuid = request.param('uuid');
  const body = await providerBody(dependencies, request, bySince(providerInventoriesBodies, request.version));
  const put = Object.entries(body.inventories).map(([name, record]) => [name, inventoryFields(record)] as const);
  const numbersOf = writtenNumbers(request.bodyText());
  const { plan, shown } = await writeJudged(dependencies, request, (provider, fleet) => {
    requireInventories(request, provider, fleet);
    requireGeneration(provider, body.resource_provider_generation, generationConflict);
    checkCapacity(put, uuid, request.version, 'update');
    const values = put.map(([name, fields]) => {
      const classId = fleet.classes.byName.get(name)?.id;
      if (classId === undefined) throw unknownClassIn('Unknown resource class in inventory', uuid, name, fleet);
      return { classId, className: name, ...fields, numbers: numbersOf(name) };
    });
    const putIds = new Set(values.map(({ classId }) => classId));
    const removed = provider.inventories.filter(({ fields }) => !putIds.has(fields.classId));
    const inUse = inUseAmong(removed, provider, fleet);
    if (inUse !== undefined) throw conflict(`update conflict: ${inUse}`, errorCodes.inventoryInUse);
    return { put: values, write: inventoriesWrite(fleet, provider, values, removed) };
  });
  return listAnswer(request, asWritten(shown, uuid, body.resource_provider_generation, plan.put), shown);
}

function removeAll(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const lostRace = () =>
    conflict(
      `Unable to delete inventory for resource provider ${request.param('uuid')} because the inventory was updated ` +
        'by another process. Please retry your request.',
      errorCodes.concurrentUpdate,
    );
  const judge = (provider: Provider, fleet: Fleet) => {
    requireInventories(request, provider, fleet);
    const inUse = inUseAmong(provider.inventories, provider, fleet);
    if (inUse !== undefined) throw conflict(inUse, errorCodes.inventoryInUse);
    return inventoriesWrite(fleet, provider, [], provider.inventories);
  };
  return deleteJudged(dependencies, request, judge, lostRace);
}

async function replaceOne(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const uuid = request.param('uuid');
  const name = request.param('resource_class');
  const body = await providerBody(dependencies, request, bySince(replacementSchemas, request.version));
  const fields = inventoryFields(body);
  const numbers = writtenNumbers(request.bodyText())();
  const { plan, shown } = await writeJudged(dependencies, request, (provider, fleet) => {
    requireInventory(request, provider, fleet);
    requireGeneration(provider, body.resource_provider_generation, generationConflict);
    checkCapacity([[name, fields]], uuid, request.version, 'update');
    const classId = fleet.classes.byName.get(name)?.id;
    // In upstream an unknown class leaves the handler as an exception, so the answer has no Vary.
    if (classId === undefined) throw notFoundWithoutVary(noSuchClass(name));
    if (inventoryOf(provider, classId) === undefined) {
      throw badRequest(
        `No inventory record with resource class for resource provider ${uuid}: No inventory of class ${name} found.`,
      );
    }
    const put = [{ classId, className: name, ...fields, numbers }];
    return { put, write: inventoriesWrite(fleet, provider, put, []) };
  });
  return writtenAnswer(request, 200, asWritten(shown, uuid, body.resource_provider_generation, plan.put));
}

function removeOne(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const name = request.param('resource_class');
  const missing = (reason: string) => notFound(`No inventory of class ${name} found for delete: ${reason}`);
  const refused = (reason: string) =>
    conflict(`Unable to delete inventory of class ${name}: ${reason}`, errorCodes.concurrentUpdate);
  const judge = (provider: Provider, fleet: Fleet) => {
    const classId = fleet.classes.byName.get(name)?.id;
    if (classId === undefined) throw missing(noSuchClass(name));
    const inventory = inventoryOf(provider, classId);
    if (inventory === undefined) throw missing(`No inventory of class ${name} found for delete`);
    requireInventory(request, provider, fleet);
    const inUse = inUseAmong([inventory], provider, fleet);
    if (inUse !== undefined) throw refused(inUse);
    return inventoriesWrite(fleet, provider, [], [inventory]);
  };
  return deleteJudged(dependencies, request, judge, () => refused(concurrentlyUpdated));
}

// Response shapes

/** The provider of a GET. Upstream's text has a blank before the colon. */
const shownProvider = (fleet: Fleet, request: ApiRequest): Provider =>
  findShownProvider(fleet, request.param('uuid'), ' : ');

/** The answer to a write of one inventory. */
function writtenAnswer(request: ApiRequest, status: number, written: ReturnType<typeof asWritten>): Answer {
  const [inventory] = written.inventories;
  if (inventory === undefined) throw new Error('A write of one inventory writes one.');
  return oneAnswer(request, status, written, inventory);
}

const generationConflict = 'resource provider generation conflict';

/** @throws ApiError 412 if the tag of all inventories together is not in If-Match */
const requireInventories = (request: ApiRequest, provider: Provider, fleet: Fleet): void =>
  requireMatch(request, `What resource provider ${provider.uuid} has`, () => inventoriesTagOf(fleet, provider));

/** @throws ApiError 412 if the tag of the requested inventory is not in If-Match */
function requireInventory(request: ApiRequest, provider: Provider, fleet: Fleet): void {
  const name = request.param('resource_class');
  const inventory = inventoryOf(provider, fleet.classes.byName.get(name)?.id ?? -1);
  requireMatch(
    request,
    `What resource provider ${provider.uuid} has of ${name}`,
    () => inventory && inventoryTagOf(inventory),
  );
}

/** The error text that names the inventories with allocations; undefined where none has any. */
function inUseAmong(inventories: readonly Inventory[], provider: Provider, fleet: Fleet): string | undefined {
  const used = inventories.filter((inventory) => inventory.used > 0);
  if (used.length === 0) return undefined;
  const names = used.map((inventory) => nameOf(fleet.classes, inventory.fields.classId));
  return inventoryInUse(names, provider.uuid);
}

// Writes

type NewInventory = FieldsOfClass & { readonly className: string };

/**
 * The write that sets some inventories of a provider and removes others. The names of the classes are guarded: the request names
 * them, and they are part of the entity tags.
 */
export function inventoriesWrite(
  fleet: Fleet,
  provider: Provider,
  put: readonly NewInventory[],
  remove: readonly Inventory[],
): ProviderWrite {
  const { classes } = fleet;
  const removed = remove.map(({ fields }) => fields.classId);
  const changed = new Set([...put.map(({ classId }) => classId), ...removed]);
  const kept = provider.inventories.map(({ fields }) => fields).filter(({ classId }) => !changed.has(classId));
  return {
    kind: 'inventories',
    providerId: provider.id,
    uuid: provider.uuid,
    generation: provider.generation,
    put: put.map((inventory) => ({ ...inventory, tag: inventoryTag(inventory) })),
    remove: removed,
    present: provider.inventories.flatMap(({ fields }) => classes.byId.get(fields.classId) ?? []),
    tag: inventoriesTag([
      ...put.map((inventory) => [inventory.className, inventory] as const),
      ...kept.map((fields) => [nameOf(classes, fields.classId), fields] as const),
    ]),
    tagBefore: inventoriesTagOf(fleet, provider),
  };
}
