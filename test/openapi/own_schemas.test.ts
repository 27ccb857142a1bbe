/**
 * What an endpoint accepts by its own schemas is what openapi.yaml says, at each microversion and both ways: fields of bodies, parameters of
 * queries, and headers.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, test } from 'node:test';
import { routes } from '../../src/api/routes.ts';
import { placementService } from '../../src/rest/microversions.ts';
import { accepted, makeProvider, newClaim, requestsTo } from '../requests.ts';
import { openTestService } from '../services.ts';
import { contractFor } from './contract.ts';
import { objectAt } from './document.ts';
import { standsFor } from './request.ts';
import { fieldsOf, writtenFields } from './schema_fields.ts';

type Asked = { schema: unknown; readonly headers: Set<string> };

/** The schemas and headers that the endpoint of the last request used. */
let asked: Asked | undefined;

/**
 * Sends a request. @returns the schemas and headers that its endpoint used; undefined if no endpoint got the request
 */
async function askedBy(request: () => Promise<unknown>): Promise<Asked | undefined> {
  asked = undefined;
  await request();
  return asked;
}

// The endpoints are unchanged; the request notes which schemas and headers an endpoint uses.
for (const endpoint of routes) {
  const { handle } = endpoint;
  Object.assign(endpoint, {
    handle: (request: Parameters<typeof handle>[0], parts: Parameters<typeof handle>[1]) => {
      const noted: Asked = { schema: undefined, headers: new Set<string>() };
      asked = noted;
      const noting: typeof request = {
        ...request,
        param: (name) => request.param(name),
        json: (schema) => {
          noted.schema = schema;
          return request.json(schema);
        },
        header: (name) => {
          noted.headers.add(name);
          return request.header(name);
        },
      };
      return handle(noting, parts);
    },
  });
}

const service = await openTestService('embedded');
after(() => service.close());
const send = requestsTo(service, 'placement 1.39');
const host = randomUUID();
const consumer = randomUUID();
await makeProvider(send, host, { VCPU: { total: 8 } });
accepted(await send('PUT', `/allocations/${consumer}`, { ...newClaim({ [host]: { VCPU: 1 } }), consumer_type: 'JOB' }));

/** A path of the router with real values, whose resources exist. */
const real = (path: string): string =>
  path
    .replace(/^\/(allocations|consumers)\/:[a-z_]+/, `/$1/${consumer}`)
    .replace(/^\/resource_providers\/:[a-z_]+/, `/resource_providers/${host}`)
    .replace(/^\/(resource_classes|traits)\/:[a-z_]+/, '/$1/CUSTOM_NAME')
    .replace(/:[a-z_]+/, 'VCPU');

const inDocument = (path: string): string => (path === '' ? '/' : path).replace(/:([a-z_]+)/g, '{$1}');

const versions = Array.from({ length: placementService.maxMinor + 1 }, (_, minor) => minor);
const existing = routes.flatMap((route) =>
  versions
    .filter((minor) => route.since <= minor && minor <= (route.until ?? placementService.maxMinor))
    .map((minor) => ({ route, minor, version: `placement 1.${minor}` })),
);

/** The parameters of a kind that the document has for a route at a version. */
const written = ({ method, path }: (typeof routes)[number], minor: number, kind: 'query' | 'header') =>
  contractFor(method, inDocument(path), minor).parameters.filter((parameter) => parameter.in === kind);

test('the fields of a body are those of openapi.yaml', async () => {
  const complaints = new Set<string>();
  let bodies = 0;
  for (const { route, minor, version } of existing) {
    const { operation } = contractFor(route.method, inDocument(route.path), minor);
    const content = objectAt(objectAt(operation ?? {}, 'requestBody'), 'content');
    const isWrite = route.method === 'PUT' || route.method === 'POST';
    const own = fieldsOf(
      isWrite ? (await askedBy(() => send(route.method, real(route.path), {}, version)))?.schema : undefined,
    );
    const described = writtenFields(objectAt(content, 'application/json').schema);
    const isOpaque = (field: string) => [...own.opaque].some((place) => field.startsWith(place));
    for (const field of own.named) {
      bodies += 1;
      if (!described.has(field))
        complaints.add(`${route.method} ${route.path} accepts ${field}, which openapi.yaml lacks`);
    }
    for (const field of described) {
      if (!own.named.has(field) && !isOpaque(field)) {
        complaints.add(`${route.method} ${route.path} at 1.${minor} does not know ${field} of openapi.yaml`);
      }
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
    existing.flatMap(({ route, minor }) => written(route, minor, 'query').map(({ name }) => inUse(String(name)))),
  );
  const complaints = new Set<string>();
  let parameters = 0;
  for (const { route, minor, version } of existing.filter(({ route }) => route.method === 'GET')) {
    const at = `${route.path} at 1.${minor}`;
    const described = written(route, minor, 'query');
    const path = `${real(route.path)}?${route.path === '/usages' ? 'project_id=p&' : ''}`;
    const refusal = await send('GET', `${path}not_known=1`, undefined, version);
    if (!refusesAsUnknown(refusal, 'not_known')) {
      // The endpoint ignores unknown parameters.
      if (described.length > 0 && minor >= 40) complaints.add(`${at} does not refuse an unknown parameter`);
      continue;
    }
    // From 1.41 on the refusal lists what is known, also what the document may lack.
    const [, listed = ''] = /Known are ([a-z_, ]+)\./.exec(refusal.text) ?? [];
    for (const name of new Set([...names, ...listed.split(', ').filter((one) => one !== '')])) {
      parameters += 1;
      const isKnown = !refusesAsUnknown(await send('GET', `${path}${asValid(name, path)}`, undefined, version), name);
      const isDescribed = described.some((parameter) => standsFor(parameter, name));
      if (isKnown && !isDescribed) complaints.add(`${at} accepts ${name}, which openapi.yaml lacks`);
      if (!isKnown && isDescribed) complaints.add(`${at} does not know ${name} of openapi.yaml`);
    }
  }
  assert.deepEqual([...complaints], []);
  assert.ok(parameters > 5_000, `${parameters} parameters were compared`);
});

/** Headers that the service reads before an endpoint does. */
const common = ['openstack-api-version', 'x-openstack-placement-api-version', 'x-openstack-request-id'];

test('the headers that an endpoint reads are those of openapi.yaml', async () => {
  const complaints = new Set<string>();
  for (const { route, minor, version } of existing) {
    const described = written(route, minor, 'header').map(({ name }) => String(name).toLowerCase());
    const read = new Set(route.ifMatchSince !== undefined && minor >= route.ifMatchSince ? ['if-match'] : []);
    if (route.method === 'GET') {
      // The token of changes is invalid, so that no stream of events begins.
      const path = real(route.path) + (route.answersEvents ? '?since=0' : '');
      for (const accept of route.answersEvents ? ['application/json', 'text/event-stream'] : ['application/json']) {
        const headers = { 'x-auth-token': 'admin', 'openstack-api-version': version, accept };
        const noted = await askedBy(async () => service.app.request(path, { headers }));
        for (const name of noted?.headers ?? []) read.add(name);
      }
    }
    for (const name of read) {
      if (!described.includes(name))
        complaints.add(`${route.method} ${route.path} reads ${name}, which openapi.yaml lacks`);
    }
    for (const name of described) {
      if (!read.has(name) && !common.includes(name))
        complaints.add(`${route.method} ${route.path} does not read ${name}`);
    }
  }
  assert.deepEqual([...complaints], []);
});
