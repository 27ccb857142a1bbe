/** Every operation of the API by every kind of caller: who gets 401, who 403, and who passes, by the defaults of upstream. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { routes } from '../../src/api/routes.ts';
import { computeRoutes } from '../../src/compute/compute_api.ts';
import { versionOfText } from '../../src/placement/versions.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine } from '../support/engines.ts';
import { type Answer, accepted, at, makeProvider, newClaim, newestVersion, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { callers, headersOf, rightOutcome } from './callers.ts';
import { type Operation, operations, type Scene } from './operations.ts';

const nameOf = ({ method, path, query, version }: Operation): string =>
  `${method} ${path}${query === undefined ? '' : `?${query}`} ${version}`.trimEnd();

/** Requests of a caller. The version is a whole one, `compute 2.53`; empty for none. */
const requestsOf =
  ({ app }: Pick<PlacementService, 'app'>, identity: Readonly<Record<string, string>>): Send =>
  async (method, path, body, version = `placement ${newestVersion}`) => {
    const headers = new Headers(identity);
    if (version !== '') headers.set('openstack-api-version', version);
    if (body !== undefined) headers.set('content-type', 'application/json');
    const response = await app.request(path, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = text !== '' && response.headers.get('content-type') === 'application/json';
    const { status, headers: answered } = response;
    const json: unknown = isJson ? JSON.parse(text) : undefined;
    return { request: `${method} ${path}`, status, headers: answered, text, json };
  };

/** Makes what the requests name. */
async function makeScene(send: Send): Promise<Scene> {
  const freeName = () => `CUSTOM_${randomUUID().replaceAll('-', '_').toUpperCase()}`;
  const names = { class: freeName(), trait: freeName(), freeName: freeName(), serviceHost: freeName() };
  const [host, spare, vm] = [randomUUID(), randomUUID(), randomUUID()];
  const agent = { host: names.serviceHost, binary: 'nova-compute', uptime: 'up 3 days' };
  const services = '/compute/v2.1/os-services';
  const [registered] = await Promise.all([
    send('POST', services, agent, 'compute 2.53'),
    makeProvider(send, host, { VCPU: { total: 8 } }),
    makeProvider(send, spare, { VCPU: { total: 8 } }, { name: names.serviceHost }),
    send('PUT', `/resource_classes/${names.class}`).then(accepted),
    send('PUT', `/traits/${names.trait}`).then(accepted),
  ]);
  const claim = { ...newClaim({ [host]: { VCPU: 1 } }), project_id: 'p1', user_id: 'ada' };
  accepted(await send('PUT', `/allocations/${vm}`, claim));
  const hostGeneration = Number(at((await send('GET', `/resource_providers/${host}`)).json, 'generation'));
  const numbered = await send('GET', `${services}?host=${names.serviceHost}`, undefined, 'compute 2.1');
  return {
    ...names,
    host,
    hostGeneration,
    spare,
    vm,
    unused: randomUUID(),
    unknown: randomUUID(),
    service: String(at(accepted(registered).json, 'service', 'id')),
    serviceId: String(at(accepted(numbered).json, 'services', 0, 'id')),
    hypervisor: spare,
  };
}

const filled = (text: string, scene: Scene): string =>
  Object.entries(scene).reduce((before, [name, value]) => before.replaceAll(`{${name}}`, String(value)), text);

function sendOperation(send: Send, { method, path, query, version, body }: Operation, scene: Scene): Promise<Answer> {
  const url = filled(query === undefined ? path : `${path}?${query}`, scene);
  return send(method, url, body?.(scene), version);
}

/** All that a request could have changed. */
async function readAll(send: Send): Promise<readonly string[]> {
  const paths = ['resource_providers', 'provider_summaries', 'consumers', 'resource_classes', 'traits'];
  const answers = await Promise.all([
    ...paths.map((path) => send('GET', `/${path}`)),
    send('GET', '/compute/v2.1/os-services', undefined, 'compute 2.53'),
  ]);
  return answers.map((answer) => accepted(answer).text);
}

test('the table has every operation of the API', () => {
  const all = [...routes, ...computeRoutes];
  const literal = new Set(all.map(({ path }) => path));
  for (const { method, path, since, until = Number.POSITIVE_INFINITY } of all) {
    const pattern = new RegExp(`^${path.replaceAll(/:\w+/g, '[^/]+')}$`);
    const found = operations.some((operation) => {
      if (operation.method !== method || !pattern.test(operation.path)) return false;
      // `/os-hypervisors/detail` is not one hypervisor.
      if (literal.has(operation.path) && operation.path !== path) return false;
      const version = versionOfText(operation.version.split(' ')[1] ?? '');
      return operation.version === '' || (since <= version && version <= until);
    });
    assert.ok(found, `${method} ${path} from ${since} to ${until}`);
  }
});

test('each caller gets 401 or 403, or passes, as the default rules say; and what is refused changes nothing', async () => {
  await withStandIn((keystone) =>
    withTestService(
      anyEngine,
      {
        api: { authStrategy: 'keystone' },
        keystoneAuthtoken: { ...settingsFor(keystone), serviceType: 'placement' },
        compute: { enabled: true },
        metrics: { requireToken: true },
      },
      async (service) => {
        const operator = { project: 'p1', roles: ['admin', 'service'] };
        const send = requestsOf(service, { 'x-auth-token': keystone.issue(operator) });
        const sends = new Map(callers.map((caller) => [caller, requestsOf(service, headersOf(caller, keystone))]));
        let scene = await makeScene(send);
        for (const operation of operations) {
          const isRead = operation.method === 'GET';
          const before = isRead ? undefined : await readAll(send);
          const passing: { readonly name: string; readonly send: Send }[] = [];
          for (const [caller, sendAsCaller] of sends) {
            const right = rightOutcome(caller, operation);
            if (right === 'passes') {
              passing.push({ name: caller.name, send: sendAsCaller });
              continue;
            }
            const { status, text } = await sendOperation(sendAsCaller, operation, scene);
            assert.equal(status, right, `${nameOf(operation)}, ${caller.name}: ${text}`);
          }
          if (before) assert.deepEqual(await readAll(send), before, `${nameOf(operation)} was refused`);
          for (const [index, { name, send }] of passing.entries()) {
            const { status, text } = await sendOperation(send, operation, scene);
            const what = `${nameOf(operation)}, ${name}: ${status} ${text}`;
            assert.ok(status !== 401 && status !== 403 && status < 500, what);
            // Only the first one finds what the request names as it was made.
            if (index === 0)
              assert.ok(operation.status === undefined ? status < 300 : status === operation.status, what);
          }
          if (!isRead) scene = await makeScene(send);
        }
      },
    ),
  );
});
