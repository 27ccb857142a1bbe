import * as v from 'valibot';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import {
  deleteLimits,
  type ProjectSelection,
  type ReadLimits,
  readLimits,
  type StoredLimits,
  type StoredValues,
  WritesUnderWay,
  writeLimits,
} from '../../db/statements/limits.ts';
import { type CountingOptions, countingOptions } from '../claims/limits.ts';
import { limitsOf } from '../fleet/model/limits.ts';
import { incompleteOwner } from '../placement/consumer.ts';
import { limitsTag } from '../placement/entity_tag.ts';
import { classNamePattern, maxInteger } from '../placement/inventory.ts';
import { anyType, type LimitKind, limitsInForce } from '../placement/limits.ts';
import { since } from '../placement/microversions.ts';
import { badRequest, conflict, errorCodes, notFound, tryLater, unknownClass } from '../request/errors.ts';
import { untilDone } from '../request/until_done.ts';
import { type Answer, type ApiRequest, type Endpoint, noContent } from '../rest/endpoint.ts';
import { either, integer, integerOrNull, keyed, number, object, oneOf } from '../rest/json_schema.ts';
import { checkUnrepeated, checkValue, integerParameter } from '../rest/schema_check.ts';
import { pythonRepr } from '../rest/schema_complaint.ts';
import { ownerId } from './allocations/bodies.ts';
import { pageJson, pageParameters, preconditionFailed, requireMatch, takesIfMatch, usualLimit } from './answers.ts';
import type { Dependencies } from './dependencies.ts';

// Routes

const path = '/limits';
/** The name of a project may have slashes, also decoded by a reverse proxy, and ends of lines. */
const one = `${path}/:project_id{[^]+}`;
const defaults = '/default_limits';
const shared = { since: since.teams, answersJson: true } as const;
const rule = (verb: string) => `placement:limits:${verb}`;
const update = { ...shared, method: 'PUT', policy: rule('update'), wantsJson: true, ...takesIfMatch } as const;
const remove = {
  method: 'DELETE',
  since: since.teams,
  policy: rule('delete'),
  takesParameters: true,
  ...takesIfMatch,
} as const;

export const limitEndpoints: readonly Endpoint<Dependencies>[] = [
  { ...shared, method: 'GET', path, policy: rule('list'), takesParameters: true, handle: list },
  {
    ...shared,
    method: 'GET',
    path: one,
    policy: rule('show'),
    policyTarget: ({ param }) => ({ project_id: param('project_id') }),
    handle: show,
  },
  { ...update, path: one, handle: put },
  { ...remove, path: one, handle: removeOne },
  { ...shared, method: 'GET', path: defaults, policy: rule('show'), handle: showDefaults },
  { ...update, path: defaults, handle: putDefaults },
  { ...remove, path: defaults, handle: removeDefaults },
];

// Request schemas

const limit = integer({ minimum: 0, maximum: maxInteger });
/** A value as GET shows it, which may be sent back. */
const shownLimit = object({
  limit: v.nullable(limit),
  used: v.optional(number({ maximum: Number.MAX_VALUE })),
  from: v.optional(oneOf(['project', 'default'])),
});
const ownLimit = v.nullable(either('limit', shownLimit, limit));
const typePattern = /^([A-Z0-9_]{1,255}|all|unknown)$/;
const newLimits = object({
  resources: v.optional(keyed(classNamePattern, ownLimit)),
  consumers: v.optional(keyed(typePattern, ownLimit)),
  generation: integerOrNull({ minimum: 0, maximum: maxInteger }),
  project_id: v.optional(ownerId),
});
const newDefaults = object({
  resources: v.optional(keyed(classNamePattern, limit)),
  consumers: v.optional(keyed(typePattern, limit)),
  generation: integerOrNull({ minimum: 0, maximum: maxInteger }),
});

const listParameters = object(pageParameters(1000));
const removalParameters = object({ generation: v.optional(integerParameter(0, maxInteger)) });

// Handlers

async function list(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const { limit = usualLimit, marker = '' } = checkUnrepeated(request.query(), listParameters);
  const read = await readLimitsOf(dependencies, { after: marker, limit: limit + 1 });
  const json = pageJson(request, path, read.projects, {
    limit,
    represent: (project) => represent(project, read.defaults, dependencies),
    markerOf: ({ project }) => project,
  });
  return { status: 200, json, lastModified: new Date() };
}

async function show(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  return answerFor(limitedProjectOf(request), dependencies);
}

async function put(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const project = limitedProjectOf(request);
  const { generation, project_id: named, ...body } = await request.json(newLimits);
  if (named !== undefined && named !== project) {
    throw badRequest(
      `'project_id': the body is of project ${pythonRepr(named)}, and the path of ${pythonRepr(project)}.`,
    );
  }
  const values = { resources: ownValues(body.resources), consumers: ownValues(body.consumers) };
  await store(request, dependencies, { project, values, generation });
  return answerFor(project, dependencies);
}

async function removeOne(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  return removeStored(request, dependencies, projectOf(request));
}

async function showDefaults(_request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  return defaultsAnswer(dependencies);
}

async function putDefaults(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  const { generation, resources = {}, consumers = {} } = await request.json(newDefaults);
  await store(request, dependencies, { project: '', values: { resources, consumers }, generation });
  return defaultsAnswer(dependencies);
}

function removeDefaults(request: ApiRequest, dependencies: Dependencies): Promise<Answer> {
  return removeStored(request, dependencies, '');
}

/** The project of the path, which a reverse proxy may have decoded. */
const projectOf = (request: ApiRequest): string =>
  checkValue({ project_id: request.param('project_id') }, object({ project_id: ownerId }), 'The path does not validate')
    .project_id;

/**
 * The project of the path, for requests that would also be answered for a project that does not exist.
 *
 * @throws ApiError 400 for a slash at the end: the client of `/limits/web/` means the project `web`, and there is no project `web/`
 */
function limitedProjectOf(request: ApiRequest): string {
  const project = projectOf(request);
  if (project.endsWith('/'))
    throw badRequest(`'project_id': ${pythonRepr(project)} ends with a slash; there are no limits of such a project.`);
  return project;
}

/** The limits of a project, or the defaults, in a sentence. */
const limitsOfProject = (project: string): string =>
  project === '' ? 'default limits' : `limits of project ${project}`;

/** @throws ApiError 409 where the client knows another generation than the stored one */
function requireGeneration(project: string, seen: StoredLimits | undefined, known: number | null): void {
  const present = seen?.generation ?? null;
  if (present === known) return;
  throw conflict(
    `The ${limitsOfProject(project)} have generation ${present ?? 'null'}, and the request names ${known ?? 'null'}. Read them again.`,
    errorCodes.concurrentUpdate,
  );
}

type OwnLimits = v.InferOutput<typeof newLimits>['resources'];

/** The values that the project itself has: values that are shown from the defaults are left out. */
const ownValues = (limits: OwnLimits = {}): StoredValues['resources'] =>
  Object.fromEntries(
    Object.entries(limits).flatMap(([name, value]) => {
      if (value === null || typeof value === 'number') return [[name, value]];
      return value.from === 'default' ? [] : [[name, value.limit]];
    }),
  );

type Stored = { readonly project: string; readonly values: StoredValues; readonly generation: number | null };

/** @throws ApiError 400, 409, 412, or 503 where other writes did not end */
async function store(request: ApiRequest, dependencies: Dependencies, stored: Stored): Promise<void> {
  const { project, values, generation } = stored;
  const { database, fleet, logger } = dependencies;
  await untilDone(async () => {
    const seen = await readStored(dependencies, project);
    requireMatch(request, `What the ${limitsOfProject(project)} are`, () => seen && limitsTag(seen));
    requireGeneration(project, seen, generation);
    const { classes } = await fleet.fresh();
    for (const name of Object.keys(values.resources)) {
      const isKept = seen !== undefined && Object.hasOwn(seen.resources, name);
      if (!classes.byName.has(name) && !isKept) throw badRequest(`'resources': ${unknownClass(name, classes)}`);
    }
    return repeatLostRaces(() => writeLimits(database, { project, ...values, known: generation })).catch(asApiError);
  });
  const of = project === '' ? 'all projects by default' : `project ${project}`;
  logger.info(
    `User ${request.identity.userId} limited ${of}: resources ${JSON.stringify(values.resources)}, ` +
      `consumers ${JSON.stringify(values.consumers)}.`,
  );
}

function asApiError(error: unknown): never {
  if (!(error instanceof WritesUnderWay)) throw error;
  throw tryLater(
    'What projects have is counted from the first limit on, and other writes that began before did not end in time. Nothing was stored. ' +
      'Try again.',
    10,
  );
}

/** @throws ApiError 404, 409 or 412 */
async function removeStored(request: ApiRequest, dependencies: Dependencies, project: string): Promise<Answer> {
  const what = limitsOfProject(project);
  const { generation } = checkUnrepeated(request.query(), removalParameters);
  const { database, logger } = dependencies;
  await untilDone(async () => {
    const seen = await readStored(dependencies, project);
    if (request.ifMatch !== undefined && seen === undefined) throw preconditionFailed(`What the ${what} are`);
    if (seen === undefined) throw notFound(`There are no ${what}.`);
    requireMatch(request, `What the ${what} are`, () => limitsTag(seen));
    if (generation !== undefined) requireGeneration(project, seen, generation);
    const isDone = await repeatLostRaces(() => deleteLimits(database, project, seen.generation));
    return isDone ? true : undefined;
  });
  logger.info(`User ${request.identity.userId} deleted the ${what}.`);
  return noContent;
}

const readLimitsOf = ({ database, config }: Dependencies, selection: ProjectSelection): Promise<ReadLimits> =>
  repeatLostRaces(() => readLimits(database, selection, incompleteOwner(config).projectId));

async function readStored(dependencies: Dependencies, project: string): Promise<StoredLimits | undefined> {
  const read = await readLimitsOf(dependencies, { names: project === '' ? [] : [project] });
  return project === '' ? read.defaults : read.projects[0]?.own;
}

// Response shapes

async function answerFor(project: string, dependencies: Dependencies): Promise<Answer> {
  const { projects, defaults } = await readLimitsOf(dependencies, { names: [project] });
  const [read = { project, own: undefined, usages: [] }] = projects;
  return {
    status: 200,
    json: represent(read, defaults, dependencies),
    etag: read.own && limitsTag(read.own),
    lastModified: new Date(),
  };
}

const represent = (
  read: ReadLimits['projects'][number],
  defaults: StoredLimits | undefined,
  { config }: Dependencies,
) => shownLimits(read, defaults, countingOptions(config));

/** The limits of a project, with the defaults where the project has no value, and its usages of the limited resources. */
export function shownLimits(
  { project, own, usages }: ReadLimits['projects'][number],
  defaults: StoredLimits | undefined,
  { uncountedTypes }: Pick<CountingOptions, 'uncountedTypes'>,
) {
  const counted = usages.filter(({ type }) => !uncountedTypes.includes(type));
  const usedOf: Readonly<Record<LimitKind, (name: string) => number>> = {
    resources: (name) => sum(counted.filter(({ className }) => className === name)),
    consumers: (name) =>
      sum(counted.filter(({ type, className }) => className === null && (name === anyType || name === type))),
  };
  const stored = {
    ...(own === undefined ? {} : { [project]: own }),
    ...(defaults === undefined ? {} : { '': defaults }),
  };
  const limits = limitsOf({ isCounting: true, projects: stored });
  const shown = (kind: LimitKind) => {
    const lifted = Object.entries(own?.[kind] ?? {}).filter(([, value]) => value === null);
    const inForce = [...limitsInForce(limits, project, kind)];
    return Object.fromEntries(
      [...inForce, ...lifted.map(([name]) => [name, { limit: null, from: 'project' }] as const)]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, { limit, from }]) => [name, { limit, used: usedOf[kind](name), from }]),
    );
  };
  return {
    project_id: project,
    resources: shown('resources'),
    consumers: shown('consumers'),
    generation: own?.generation ?? null,
  };
}

const sum = (usages: ReadLimits['projects'][number]['usages']): number =>
  usages.reduce((total, { used }) => total + used, 0);

async function defaultsAnswer(dependencies: Dependencies): Promise<Answer> {
  const stored = await readStored(dependencies, '');
  return {
    status: 200,
    json: {
      resources: stored?.resources ?? {},
      consumers: stored?.consumers ?? {},
      generation: stored?.generation ?? null,
    },
    etag: stored && limitsTag(stored),
    lastModified: new Date(),
  };
}
