import type * as v from 'valibot';
import { countHostedConsumers, readHostedConsumers } from '../../db/statements/services/read_hosted_consumers.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import type { Provider } from '../fleet/model/provider.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { bySince } from '../placement/versions.ts';
import { ApiError, badRequest, notFound } from '../request/errors.ts';
import type { Answer, ApiRequest, Endpoint } from '../rest/endpoint.ts';
import { text } from '../rest/json_schema.ts';
import { listInTurns } from '../rest/made_in_turns.ts';
import { likePattern } from '../text/like_pattern.ts';
import type { ComputeDependencies } from './dependencies.ts';
import {
  type Hypervisor,
  hypervisorDetail,
  hypervisorStatistics,
  hypervisorView,
  membersOf,
  readHypervisors,
} from './hypervisor.ts';
import { hostName, integerId, readQuery, readUuid, truth } from './validation.ts';
import { since } from './versions.ts';

// Routes

const rule = (verb: string) => `os_compute_api:os-hypervisors:${verb}`;
const root = '/compute/v2.1/os-hypervisors';
const beforeUuids = { method: 'GET', since: since.firstVersion, until: since.uuids - 1 } as const;

export const hypervisorEndpoints: readonly Endpoint<ComputeDependencies>[] = [
  { method: 'GET', path: root, since: since.firstVersion, policy: rule('list'), handle: list(false) },
  { method: 'GET', path: `${root}/detail`, since: since.firstVersion, policy: rule('list-detail'), handle: list(true) },
  {
    method: 'GET',
    path: `${root}/statistics`,
    since: since.firstVersion,
    policy: rule('statistics'),
    handle: statistics,
  },
  { method: 'GET', path: `${root}/:hypervisor_id`, since: since.firstVersion, policy: rule('show'), handle: show },
  {
    method: 'GET',
    path: `${root}/:hypervisor_id/uptime`,
    since: since.firstVersion,
    policy: rule('uptime'),
    handle: uptime,
  },
  { ...beforeUuids, path: `${root}/:pattern/search`, policy: rule('search'), handle: search(false) },
  { ...beforeUuids, path: `${root}/:pattern/servers`, policy: rule('servers'), handle: search(true) },
];

// Request schemas

const paging = { limit: text({ pattern: /^[0-9]*$/, minLength: 1 }), marker: text() };
/** The specification of 2.53 names the parameter without `_pattern`, Nova with it. Both are the same search. */
const searchNames = ['hypervisor_hostname_pattern', 'hypervisor_hostname'] as const;
const listQuery = {
  ...paging,
  hypervisor_hostname_pattern: hostName,
  hypervisor_hostname: hostName,
  with_servers: truth,
};
const showQuery = { with_servers: truth };

const strict = { repeatable: false, others: 'refused' } as const;
const lenient = { repeatable: true, others: 'ignored' } as const;

const listQueries = [
  { since: since.uuids, schema: { parameters: listQuery, ...strict } },
  { since: since.paging, schema: { parameters: paging, ...lenient } },
  { since: since.firstVersion, schema: { parameters: {}, ...lenient } },
] as const;

const showQueries = [
  { since: since.uuids, schema: { parameters: showQuery, ...strict } },
  { since: since.firstVersion, schema: { parameters: {}, ...lenient } },
] as const;

/** The values of a query, at any version. */
type ListValues = { readonly [Name in keyof typeof listQuery]?: v.InferOutput<(typeof listQuery)[Name]> };

// Handlers

function list(detailed: boolean): Endpoint<ComputeDependencies>['handle'] {
  return async (request, dependencies) => {
    const { version } = request;
    const query: ListValues = readQuery(request.query(), bySince(listQueries, version));
    const { limit, marker, with_servers: withServers = false } = query;
    const [searchName, other] = searchNames.filter((name) => query[name] !== undefined);
    if (other !== undefined) throw badRequest(`${other} and ${searchName} are the same search. Give one of them.`);
    const pattern = searchName === undefined ? undefined : query[searchName];
    if (pattern !== undefined && (limit !== undefined || marker !== undefined)) {
      throw badRequest(`Paging over hypervisors with the ${searchName} query parameter is not supported.`);
    }
    const found = await readHypervisors(dependencies);
    const isPaged = version >= since.paging && pattern === undefined;
    const page = isPaged
      ? pageOf(found.hypervisors, { limit, marker, maxLimit: dependencies.config.compute.maxLimit })
      : {
          hypervisors: pattern === undefined ? found.hypervisors : matching(found.hypervisors, pattern),
          next: undefined,
        };
    const next = page.next && nextPage(request, detailed, page.next);
    const hypervisors = await views({ ...found, ...page }, { detailed, withServers }, request, dependencies);
    return answerWith(hypervisors, request, next === undefined ? [] : [['hypervisors_links', JSON.stringify([next])]]);
  };
}

/** Below 2.53 the pattern is in the path. The servers of a hypervisor are listed where there are any. */
function search(withServers: boolean): Endpoint<ComputeDependencies>['handle'] {
  return async (request, dependencies) => {
    const found = await readHypervisors(dependencies);
    const hypervisors = matching(found.hypervisors, request.param('pattern'));
    const shown = await views({ ...found, hypervisors }, { detailed: false, withServers }, request, dependencies);
    return answerWith(shown, request);
  };
}

/** The sums over all enabled hypervisors, as in Nova. */
async function statistics(_: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const { fleet, hypervisors } = await readHypervisors(dependencies);
  const enabled = hypervisors.filter(({ service }) => !service.disabled);
  const statistics = hypervisorStatistics(fleet, enabled);
  const counts = await countHostedConsumers(dependencies.database, membersOf(enabled));
  const runningVms = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return { status: 200, json: { hypervisor_statistics: statistics({ runningVms }) } };
}

async function show(request: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const { version } = request;
  const query: ListValues = readQuery(request.query(), bySince(showQueries, version));
  const { with_servers: withServers = false } = query;
  const found = await findHypervisor(request, dependencies);
  const [hypervisor] = await views(found, { detailed: true, withServers }, request, dependencies);
  return { status: 200, json: { hypervisor: hypervisor?.() } };
}

/**
 * How long the machine of a hypervisor has been up, as its agent reported last.
 *
 * @throws ApiError 501 where the agent never reported it, as Nova answers for drivers that do not know it; and where
 *   the service is down, since the report is out of date then. Nova answers 400 in that case, which makes `openstack
 *   hypervisor show` fail.
 */
async function uptime(request: ApiRequest, dependencies: ComputeDependencies): Promise<Answer> {
  const [hypervisor] = (await findHypervisor(request, dependencies)).hypervisors;
  const { service } = hypervisor;
  if (service.uptime === null || !service.up) throw new ApiError(501, 'The requested functionality is not supported.');
  const view = hypervisorView(hypervisor, request.version)({ servers: undefined, runningVms: 0 });
  return { status: 200, json: { hypervisor: { ...view, uptime: service.uptime } } };
}

/** The hypervisor that the path names. @throws ApiError 404, or 400 where its id cannot be one. */
async function findHypervisor(request: ApiRequest, dependencies: ComputeDependencies) {
  const id = request.param('hypervisor_id');
  const isWanted = request.version >= since.uuids ? hasUuid(id) : hasInteger(id);
  // The service is found by the name of the provider, which the fleet has.
  const provider = (await dependencies.fleet.fresh()).roots.find(isWanted);
  const found = provider === undefined ? undefined : await readHypervisors(dependencies, provider.name);
  const [hypervisor] = found?.hypervisors ?? [];
  if (found === undefined || hypervisor === undefined) throw noSuchHypervisor(id);
  return { fleet: found.fleet, hypervisors: [hypervisor] as const };
}

/** @throws ApiError 400 */
function hasUuid(id: string): (provider: Provider) => boolean {
  const uuid = readUuid(id);
  return (provider) => provider.uuid === uuid;
}

/** @throws ApiError 404 */
function hasInteger(written: string): (provider: Provider) => boolean {
  const id = integerId(written);
  if (id === undefined) throw noSuchHypervisor(written);
  return (provider) => provider.id === id;
}

const noSuchHypervisor = (id: string): ApiError => notFound(`Hypervisor with ID '${id}' could not be found.`);

/**
 * The hypervisors whose name contains the pattern, which may have SQL's wildcards.
 *
 * @throws ApiError 404 where there is none.
 */
function matching(hypervisors: readonly Hypervisor[], pattern: string): readonly Hypervisor[] {
  const like = likePattern(`%${pattern}%`);
  const found = hypervisors.filter(({ root: { name } }) => like.test(name));
  if (found.length === 0) throw notFound(`No hypervisor matching '${pattern}' could be found.`);
  return found;
}

// Response shapes

/**
 * Views of hypervisors, each made when it is called. The fleet is read before the database, without an `await` in between, and is not
 * needed afterwards.
 */
async function views(
  { fleet, hypervisors }: { readonly fleet: Fleet; readonly hypervisors: readonly Hypervisor[] },
  { detailed, withServers }: { readonly detailed: boolean; readonly withServers: boolean },
  { version }: ApiRequest,
  { database }: ComputeDependencies,
): Promise<readonly (() => object)[]> {
  const shown = hypervisors.map((hypervisor) => ({
    id: hypervisor.root.id,
    view: detailed ? hypervisorDetail(fleet, hypervisor, version) : hypervisorView(hypervisor, version),
  }));
  const members = detailed || withServers ? membersOf(hypervisors) : [];
  const servers = withServers ? await readHostedConsumers(database, members) : undefined;
  const counts = detailed ? await countHostedConsumers(database, members) : undefined;
  return shown.map(
    ({ id, view }) =>
      () =>
        view({ servers: servers?.(id), runningVms: counts?.get(id) ?? 0 }),
  );
}

const answerWith = async (
  hypervisors: readonly (() => object)[],
  request: ApiRequest,
  more?: Parameters<typeof listInTurns>[4],
): Promise<Answer> => ({
  status: 200,
  ...(await listInTurns(request, 'hypervisors', hypervisors, (view) => JSON.stringify(view()), more)),
});

type HypervisorPage = {
  readonly hypervisors: readonly Hypervisor[];
  /** The last hypervisor of a full page: more may follow. */
  readonly next: Hypervisor | undefined;
};

/**
 * Up to `limit` hypervisors that follow the one of the marker, which is a UUID or an integer id.
 *
 * @param paging.limit digits
 * @throws ApiError 400 where the marker names no hypervisor.
 */
function pageOf(
  hypervisors: readonly Hypervisor[],
  paging: { readonly limit: string | undefined; readonly marker: string | undefined; readonly maxLimit: number },
): HypervisorPage {
  const size = Math.min(paging.maxLimit, paging.limit === undefined ? paging.maxLimit : Number(paging.limit));
  const start = paging.marker === undefined ? 0 : indexOfMarker(hypervisors, paging.marker) + 1;
  const page = hypervisors.slice(start, start + size);
  return { hypervisors: page, next: page.length === size ? page.at(-1) : undefined };
}

function indexOfMarker(hypervisors: readonly Hypervisor[], marker: string): number {
  const uuid = isUuidLike(marker) ? normalUuid(marker) : undefined;
  const id = uuid === undefined ? integerId(marker) : undefined;
  const index = hypervisors.findIndex(({ root }) => root.uuid === uuid || root.id === id);
  if (index === -1) throw badRequest(`marker [${marker}] not found`);
  return index;
}

/**
 * The link to the page that follows a hypervisor: the same query with another marker, its parameters in the order of
 * their names.
 */
function nextPage(request: ApiRequest, detailed: boolean, { root }: Hypervisor) {
  const marker = String(request.version >= since.uuids ? root.uuid : root.id);
  const query = new URLSearchParams({ ...Object.fromEntries(request.query().entries), marker });
  query.sort();
  const path = `/compute/v2.1/os-hypervisors${detailed ? '/detail' : ''}`;
  return { rel: 'next', href: `${request.origin}${request.prefix}${path}?${query}` };
}
