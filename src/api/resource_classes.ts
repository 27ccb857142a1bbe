import type { Database } from '../../db/engine/connect.ts';
import { firstCustomClassId } from '../../db/schema/standard_resource_classes.ts';
import {
  createResourceClass,
  deleteResourceClass,
  renameResourceClass,
} from '../../db/statements/names/resource_classes.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import type { Name } from '../fleet/model/names.ts';
import { nameTag } from '../placement/entity_tag.ts';
import { since } from '../placement/microversions.ts';
import { badRequest, conflict, noSuchClass, notFoundWithoutVary } from '../request/errors.ts';
import { untilDone } from '../request/until_done.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../rest/endpoint.ts';
import { object, text } from '../rest/json_schema.ts';
import { checkValue } from '../rest/schema_check.ts';
import { headerTag, modifiedAtMs, newest, requireMatch, tagged, takesIfMatch } from './answers.ts';
import type { Dependencies } from './dependencies.ts';

// Routes

const all = { path: '/resource_classes', since: since.resourceClasses } as const;
const one = { path: '/resource_classes/:name', since: since.resourceClasses } as const;
const rule = (verb: string) => `placement:resource_classes:${verb}`;

export const resourceClassEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...all, method: 'GET', policy: rule('list'), answersJson: true, handle: list },
  { ...all, method: 'POST', policy: rule('create'), wantsJson: true, handle: create },
  { ...one, method: 'GET', policy: rule('show'), answersJson: true, handle: show },
  {
    ...one,
    method: 'PUT',
    until: since.ensuredClasses - 1,
    policy: rule('update'),
    wantsJson: true,
    ...takesIfMatch,
    handle: rename,
  },
  { ...one, method: 'PUT', since: since.ensuredClasses, policy: rule('update'), ...takesIfMatch, handle: ensure },
  { ...one, method: 'DELETE', policy: rule('delete'), ...takesIfMatch, handle: remove },
];

// Request schemas

const custom = object({ name: text({ pattern: /^CUSTOM_[A-Z0-9_]+$/, maxLength: 255 }) });

// Handlers

async function list(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const classes = [...(await fleet.fresh()).classes.byId.values()];
  return {
    status: 200,
    json: { resource_classes: classes.map(({ name }) => represent(name, request).json) },
    lastModified: newest(classes.map(modifiedAtMs)),
  };
}

async function show(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const resourceClass = findClass(await fleet.fresh(), request.param('name'));
  return {
    status: 200,
    ...represent(resourceClass.name, request),
    lastModified: newest([modifiedAtMs(resourceClass)]),
  };
}

async function create(request: ApiRequest, { database }: Dependencies): Promise<Answer> {
  const { name } = await request.json(custom);
  if (!(await isCreated(database, name))) {
    throw conflict(`Conflicting resource class already exists: ${name}`);
  }
  return { status: 201, location: `/resource_classes/${name}` };
}

/** Creates a class. @returns false if there is one with this name */
const isCreated = (database: Database, name: string): Promise<boolean> =>
  untilDone(async () => {
    const outcome = await createResourceClass(database, name);
    return outcome === 'id taken' ? undefined : outcome === 'created';
  });

/** PUT up to 1.6 renames a class; its inventories have the new name, too. */
async function rename(request: ApiRequest, { database, fleet }: Dependencies): Promise<Answer> {
  const name = request.param('name');
  const body = await request.json(custom);
  return untilDone(async () => {
    const resourceClass = findClass(await fleet.fresh(), name);
    if (resourceClass.id < firstCustomClassId) throw badRequest(`Cannot update standard resource class ${name}`);
    const outcome = await renameResourceClass(database, resourceClass, body.name);
    if (outcome === 'name taken') throw conflict(`Resource class already exists: ${body.name}`);
    if (outcome === 'renamed') return { status: 200, json: shape(body.name, request) };
    return undefined; // another request deleted, renamed or recreated the class, which the next refresh shows
  });
}

/** PUT from 1.7 makes sure that a class exists, and ignores any body. */
async function ensure(request: ApiRequest, { database, fleet }: Dependencies): Promise<Answer> {
  const { name } = checkValue({ name: request.param('name') }, custom);
  const location = `/resource_classes/${name}`;
  const exists = (await fleet.fresh()).classes.byName.has(name);
  requireMatch(request, `Resource class ${name}`, () => (exists ? nameTag(name) : undefined));
  const answer = { location, ...headerTag(request, () => nameTag(name)) };
  if (exists) return { ...answer, status: 204 };
  return { ...answer, status: (await isCreated(database, name)) ? 201 : 204 };
}

async function remove(request: ApiRequest, { database, fleet }: Dependencies): Promise<Answer> {
  const resourceClass = findClass(await fleet.fresh(), request.param('name'));
  const { id, name } = resourceClass;
  if (id < firstCustomClassId) {
    throw badRequest(`Error in delete resource class: Cannot delete standard resource class ${name}.`);
  }
  requireMatch(request, `Resource class ${name}`, () => nameTag(name));
  const outcome = await deleteResourceClass(database, resourceClass);
  if (outcome === 'gone') throw notFoundWithoutVary(noSuchClass(name));
  if (outcome === 'in use') {
    throw conflict(
      `Error in delete resource class: Cannot delete resource class ${name}. Class is in use in inventory.`,
    );
  }
  return noContent;
}

function findClass(fleet: Fleet, name: string): Name {
  const resourceClass = fleet.classes.byName.get(name);
  if (resourceClass === undefined) throw notFoundWithoutVary(noSuchClass(name));
  return resourceClass;
}

// Response shapes

/** A custom class has a tag; standard ones cannot be changed. */
const represent = (name: string, request: ApiRequest) =>
  name.startsWith('CUSTOM_')
    ? tagged(request, shape(name, request), () => nameTag(name))
    : { json: shape(name, request) };

const shape = (name: string, request: ApiRequest) => ({
  name,
  links: [{ rel: 'self', href: `${request.prefix}/resource_classes/${name}` }],
});
