import * as v from 'valibot';
import { createTrait, deleteTrait } from '../../db/statements/names/traits.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import type { Name } from '../fleet/model/names.ts';
import { nameTag } from '../placement/entity_tag.ts';
import { since } from '../placement/microversions.ts';
import { badRequest, badValue, conflict, noSuchTraits, notFound } from '../request/errors.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../rest/endpoint.ts';
import { object, text } from '../rest/json_schema.ts';
import { refuseRepeats } from '../rest/query_string.ts';
import { checkQuery } from '../rest/schema_check.ts';
import { likePattern } from '../text/like_pattern.ts';
import { headerTag, modifiedAtMs, newest, requireMatch, takesIfMatch } from './answers.ts';
import type { Dependencies } from './dependencies.ts';

// Routes

const rule = (verb: string) => `placement:traits:${verb}`;
const one = { path: '/traits/:name', since: since.traits } as const;

export const traitEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/traits',
    since: since.traits,
    policy: rule('list'),
    answersJson: true,
    takesParameters: true,
    handle: list,
  },
  { ...one, method: 'GET', policy: rule('show'), handle: show },
  { ...one, method: 'PUT', policy: rule('update'), ...takesIfMatch, handle: create },
  { ...one, method: 'DELETE', policy: rule('delete'), ...takesIfMatch, handle: remove },
];

// Request schemas

const listQuery = object({ name: v.optional(text()), associated: v.optional(text()) });
const customTrait = /^CUSTOM_[A-Z0-9_]+$/;

/**
 * The `name` filter of GET /traits: `in:A,B`, or `startswith:PREFIX`, in which SQL's wildcards work: upstream puts it
 * into a LIKE. Upper and lower case are the same, as in the databases that most clouds use. Any other operator is
 * ignored.
 */
function nameFilter(value: string): (name: string) => boolean {
  const colon = value.indexOf(':');
  if (colon === -1) {
    throw badRequest(
      'Badly formatted name parameter. Expected name query string parameter in form: ' +
        `?name=[in|startswith]:[name1,name2|prefix]. Got: "${value}"`,
    );
  }
  const operand = value.slice(colon + 1);
  switch (value.slice(0, colon)) {
    case 'in': {
      const names = new Set(operand.split(','));
      return (name) => names.has(name);
    }
    case 'startswith': {
      const pattern = likePattern(`${operand}%`);
      return (name) => pattern.test(name);
    }
    default:
      return () => true;
  }
}

// Handlers

async function list(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const { name, associated } = checkQuery(request.query(), listQuery);
  refuseRepeats(request.query(), request.version);
  const matches = name === undefined ? () => true : nameFilter(name);
  const wanted = associated?.toLowerCase();
  if (associated !== undefined && wanted !== 'true' && wanted !== 'false') {
    throw badValue('The query parameter "associated" only accepts "true" or "false"', associated);
  }
  const current = await fleet.fresh();
  const traits = [...current.traits.byId.values()].filter(
    (trait) =>
      matches(trait.name) && (wanted === undefined || current.withTrait.of(trait.id).size > 0 === (wanted === 'true')),
  );
  return {
    status: 200,
    json: { traits: traits.map((trait) => trait.name) },
    lastModified: newest(traits.map(modifiedAtMs)),
  };
}

async function show(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const trait = findTrait(await fleet.fresh(), request.param('name'));
  // A trait has no body; a custom one has a tag, since standard ones cannot be changed.
  const etag = trait.name.startsWith('CUSTOM_') ? headerTag(request, () => nameTag(trait.name)) : {};
  return { ...noContent, ...etag, lastModified: createdAt(trait) };
}

async function create(request: ApiRequest, { database, fleet }: Dependencies): Promise<Answer> {
  const name = request.param('name');
  if (!customTrait.test(name) || name.length > 255) {
    throw badValue(
      'The trait is invalid. A valid trait must be no longer than 255 characters, start with the prefix "CUSTOM_" ' +
        'and use following characters: "A"-"Z", "0"-"9" and "_"',
      name,
    );
  }
  const location = `/traits/${name}`;
  const known = (await fleet.fresh()).traits.byName.get(name);
  requireMatch(request, `Trait ${name}`, () => known && nameTag(name));
  const answer = { location, ...headerTag(request, () => nameTag(name)) };
  if (known !== undefined) return { ...answer, status: 204, lastModified: createdAt(known) };
  const isNew = await createTrait(database, name);
  return { ...answer, status: isNew ? 201 : 204, lastModified: new Date() };
}

async function remove(request: ApiRequest, { database, fleet }: Dependencies): Promise<Answer> {
  const name = request.param('name');
  const current = await fleet.fresh();
  const trait = findTrait(current, name);
  if (!name.startsWith('CUSTOM_')) throw badRequest(`Cannot delete standard trait ${name}.`);
  requireMatch(request, `Trait ${name}`, () => nameTag(name));
  const outcome = current.withTrait.of(trait.id).size > 0 ? 'in use' : await deleteTrait(database, trait);
  if (outcome === 'in use') throw conflict(`The trait ${name} is in use by a resource provider.`);
  if (outcome === 'gone') throw notFound(noSuchTraits([name]));
  return noContent;
}

function findTrait(fleet: Fleet, name: string): Name {
  const trait = fleet.traits.byName.get(name);
  if (trait === undefined) throw notFound(noSuchTraits([name]));
  return trait;
}

const createdAt = (trait: Name): Date =>
  trait.createdAtSeconds === undefined ? new Date() : new Date(trait.createdAtSeconds * 1000);
