/**
 * What endpoints accept by their own schemas equals what openapi.yaml and openapi-compute.yaml say, at each
 * microversion: fields of bodies, parameters of queries, and headers.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { routes } from '../../src/api/routes.ts';
import { computeRoutes } from '../../src/compute/compute_api.ts';
import { computeService, since as sinceOfCompute } from '../../src/compute/versions.ts';
import { placementService, since } from '../../src/placement/microversions.ts';
import { type Service, type Version, versionOfText, versionText, versionTexts } from '../../src/placement/versions.ts';
import type { Route } from '../../src/rest/endpoint.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openTestService } from '../support/services.ts';
import { contractFor } from './contract.ts';
import { computeDocument, document, objectAt } from './document.ts';
import { noteUse, type UsedBy } from './noted_use.ts';
import { standsFor } from './request.ts';
import { fieldsOf, writtenFields } from './schema_fields.ts';

const usedByPlacement = noteUse(routes);
const usedByCompute = noteUse(computeRoutes);

const service = await openTestService(anyEngine, { compute: { enabled: true } });
after(() => service.close());
const send = requestsTo(service, 'placement 1.39');
const host = randomUUID();
const consumer = randomUUID();
await makeProvider(send, host, { VCPU: { total: 8 } });
accepted(await send('PUT', `/allocations/${consumer}`, { ...newClaim({ [host]: { VCPU: 1 } }), consumer_type: 'JOB' }));

const compute = '/compute/v2.1';
const registration = { host, binary: 'nova-compute' };
const registered = accepted(await send('POST', `${compute}/os-services`, registration, 'compute 2.53'));
const serviceUuid = String(at(JSON.parse(registered.text), 'service', 'id'));
const hypervisors = accepted(await send('GET', `${compute}/os-hypervisors`, undefined, 'compute 2.1'));
const hypervisorId = String(at(JSON.parse(hypervisors.text), 'hypervisors', 0, 'id'));

/** A path of the router with real values, whose resources exist. */
const real = (path: string): string =>
  path
    .replace(/^\/(allocations|consumers)\/:[a-z_]+/, `/$1/${consumer}`)
    .replace(/^\/resource_providers\/:[a-z_]+/, `/resource_providers/${host}`)
    .replace(/^\/(resource_classes|traits)\/:[a-z_]+/, '/$1/CUSTOM_NAME')
    .replace(/:[a-z_]+/, 'VCPU');

/** The same for the registry of services, whose ids are UUIDs from 2.53 on; below, its PUT names an action. */
const realOfCompute = (path: string, version: Version): string =>
  path
    .replace(':service_id', version < sinceOfCompute.uuids ? 'enable' : serviceUuid)
    .replace(':hypervisor_id', version < sinceOfCompute.uuids ? hypervisorId : host)
    .replace(':pattern', host);

/** A route at one of its versions. */
type Case = {
  readonly route: Route;
  readonly number: Version;
  readonly version: string;
  /** The path of the route with real values. */
  readonly path: string;
  /** The part of the document about it. */
  readonly contract: ReturnType<typeof contractFor>;
  readonly usedBy: UsedBy;
};

const inDocument = (path: string): string => (path === '' ? '/' : path).replace(/:([a-z_]+)/g, '{$1}');

const casesOf = (
  endpoints: readonly Route[],
  service: Service,
  more: (route: Route, version: Version) => Pick<Case, 'path' | 'contract' | 'usedBy'>,
): readonly Case[] => {
  const versions = versionTexts(service).map(versionOfText);
  return endpoints.flatMap((route) =>
    versions
      .filter((version) => route.since <= version && version <= (route.until ?? version))
      .map((number) => ({
        route,
        number,
        version: `${service.type} ${versionText(number)}`,
        ...more(route, number),
      })),
  );
};

const placementCases = casesOf(routes, placementService, ({ method, path }, version) => ({
  path: real(path),
  contract: contractFor(method, inDocument(path), version, document),
  usedBy: usedByPlacement,
}));

const computeCases = casesOf(computeRoutes, computeService, ({ method, path }, version) => ({
  path: realOfCompute(path, version),
  contract: contractFor(method, inDocument(path), version, computeDocument),
  usedBy: usedByCompute,
}));

/** The parameters of a kind that the document has for a route at a version. */
const written = ({ contract }: Case, kind: 'query' | 'header') =>
  contract.parameters.filter((parameter) => parameter.in === kind);

/** The name of a case in complaints. */
const nameOf = ({ route, version }: Case): string => `${route.method} ${route.path} at ${version}`;

test('the fields of a body are those of the document', async () => {
  const complaints = new Set<string>();
  let bodies = 0;
  for (const each of [...placementCases, ...computeCases]) {
    const { route, path, version, contract, usedBy } = each;
    const content = objectAt(objectAt(contract.operation ?? {}, 'requestBody'), 'content');
    const isWrite = route.method === 'PUT' || route.method === 'POST';
    const own = fieldsOf(isWrite ? (await usedBy(() => send(route.method, path, {}, version)))?.schema : undefined);
    const described = writtenFields(objectAt(content, 'application/json').schema);
    const isOpaque = (field: string) => [...own.opaque].some((place) => field.startsWith(place));
    for (const field of own.named) {
      bodies += 1;
      if (!described.has(field))
        complaints.add(`${route.method} ${route.path} accepts ${field}, which is not described`);
    }
    for (const field of described) {
      if (!own.named.has(field) && !isOpaque(field))
        complaints.add(`${nameOf(each)} does not know the described ${field}`);
    }
  }
  assert.deepEqual([...complaints], []);
  assert.ok(bodies > 1_000, `${bodies} fields were compared`);
});

/** Whether an answer refuses a parameter because the endpoint does not know it. */
const refusesAsUnknown = ({ status, text }: Awaited<ReturnType<typeof send>>, name: string): boolean =>
  status === 400 &&
  ['was unexpected', 'does not match any of the regexes', 'is unknown'].some((words) =>
    text.includes(`'${name}' ${words}`),
  );

/** A parameter of a group, `resources{suffix}`, as a query may have it. */
const inUse = (name: string): string => name.replace('{N}', '1').replace('{suffix}', '_A');

/** The questions about candidates refuse these two by name only once their values are valid. */
const asValid = (name: string, path: string): string =>
  ['with', 'apart_from'].includes(name) && path.startsWith('/allocation_candidates')
    ? `resources=VCPU:1&${name}=${consumer}`
    : `${name}=0`;

test('the parameters of a query are those of openapi.yaml', async () => {
  const names = new Set(
    placementCases.flatMap((each) => written(each, 'query').map(({ name }) => inUse(String(name)))),
  );
  const complaints = new Set<string>();
  let parameters = 0;
  for (const each of placementCases.filter(({ route }) => route.method === 'GET')) {
    const { route, number, version } = each;
    const described = written(each, 'query');
    const path = `${each.path}?${route.path === '/usages' ? 'project_id=p&' : ''}`;
    const refusal = await send('GET', `${path}not_known=1`, undefined, version);
    if (!refusesAsUnknown(refusal, 'not_known')) {
      // The endpoint ignores unknown parameters.
      if (described.length > 0 && number >= since.entityTags)
        complaints.add(`${nameOf(each)} does not refuse an unknown parameter`);
      continue;
    }
    // From 2.2 on the refusal lists what is known, also what the document may lack.
    const [, listed = ''] = /Known are ([a-z_, ]+)\./.exec(refusal.text) ?? [];
    for (const name of new Set([...names, ...listed.split(', ').filter((one) => one !== '')])) {
      parameters += 1;
      const isKnown = !refusesAsUnknown(await send('GET', `${path}${asValid(name, path)}`, undefined, version), name);
      const isDescribed = described.some((parameter) => standsFor(parameter, name));
      if (isKnown && !isDescribed) complaints.add(`${nameOf(each)} accepts ${name}, which is not described`);
      if (!isKnown && isDescribed) complaints.add(`${nameOf(each)} does not know the described ${name}`);
    }
  }
  assert.deepEqual([...complaints], []);
  assert.ok(parameters > 5_000, `${parameters} parameters were compared`);
});

/**
 * Sends the request of a compute case so that it succeeds, except that no service with allocations can be deleted.
 * Each version registers a host of its own: heartbeats of one host wait for each other.
 */
const sendToCompute = ({ route, path, number, version }: Case, query = '') => {
  const bodies = {
    POST: { ...registration, host: `${host}-${number}` },
    PUT: number < sinceOfCompute.uuids ? registration : { status: 'enabled' },
  };
  const body = route.method === 'POST' || route.method === 'PUT' ? bodies[route.method] : undefined;
  return send(route.method, path + query, body, version);
};

test('the parameters of a query are those of openapi-compute.yaml', async () => {
  const complaints = new Set<string>();
  let parameters = 0;
  const compare = async (each: Case) => {
    const described = new Set(written(each, 'query').map(({ name }) => String(name)));
    // A parameter `others`, or an empty list, means that unknown parameters are ignored.
    const isStrict = described.size > 0 && !described.delete('others');
    const read = (await each.usedBy(() => sendToCompute(each)))?.parameters ?? new Set();
    parameters += read.size;
    for (const name of read.difference(described))
      complaints.add(`${nameOf(each)} reads ${name}, which is not described`);
    for (const name of described.difference(read))
      complaints.add(`${nameOf(each)} does not know the described ${name}`);
    const refuses = refusesAsUnknown(await sendToCompute(each, '?not_known=1'), 'not_known');
    if (refuses !== isStrict) complaints.add(`${nameOf(each)} ${refuses ? 'refuses' : 'ignores'} unknown parameters`);
  };
  await Promise.all(computeCases.map(compare));
  assert.deepEqual([...complaints], []);
  assert.ok(parameters > 300, `${parameters} parameters were compared`);
});

const headersAt = (version: string) => ({ 'x-auth-token': 'admin', 'openstack-api-version': version });

/** Headers that the service reads before an endpoint does. */
const common = ['openstack-api-version', 'x-openstack-placement-api-version', 'x-openstack-request-id'];

test('the headers that an endpoint reads are those of the document', async () => {
  const complaints = new Set<string>();
  const compare = (each: Case, read: ReadonlySet<string>) => {
    const described = written(each, 'header').map(({ name }) => String(name).toLowerCase());
    for (const name of read) {
      if (!described.includes(name)) complaints.add(`${nameOf(each)} reads ${name}, which is not described`);
    }
    for (const name of described) {
      if (!read.has(name) && !common.includes(name)) complaints.add(`${nameOf(each)} does not read ${name}`);
    }
  };
  for (const each of placementCases) {
    const { route, number, version, usedBy } = each;
    const read = new Set(route.ifMatchSince !== undefined && number >= route.ifMatchSince ? ['if-match'] : []);
    if (route.method === 'GET') {
      // The token of changes is invalid, so that no stream of events begins.
      const path = each.path + (route.answersEvents ? '?since=0' : '');
      for (const accept of route.answersEvents ? ['application/json', 'text/event-stream'] : ['application/json']) {
        const headers = { ...headersAt(version), accept };
        const use = await usedBy(async () => service.app.request(path, { headers }));
        for (const name of use?.headers ?? []) read.add(name);
      }
    } else if (written(each, 'header').some(({ name }) => name === 'Prefer')) {
      const headers = { ...headersAt(version), 'content-type': 'application/json' };
      const use = await usedBy(async () =>
        service.app.request(each.path, { method: route.method, headers, body: '{}' }),
      );
      for (const name of use?.headers ?? []) read.add(name);
    }
    compare(each, read);
  }
  const compareCompute = async (each: Case) =>
    compare(each, (await each.usedBy(() => sendToCompute(each)))?.headers ?? new Set());
  await Promise.all(computeCases.map(compareCompute));
  assert.deepEqual([...complaints], []);
});
