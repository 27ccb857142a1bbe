/** Every operation of the API by every kind of caller: which callers get 401, which 403, and which pass, by the defaults of upstream. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { routes } from '../../src/api/routes.ts';
import { computeRoutes } from '../../src/compute/compute_api.ts';
import { versionOfText } from '../../src/placement/versions.ts';
import { settingsFor, withStandIn } from '../keystone/stand_in.ts';
import { anyEngine } from '../support/engines.ts';
import type { Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { callers, headersOf, rightOutcome } from './callers.ts';
import { operations } from './operations.ts';
import { makeScene, nameOf, readAll, requestsOf, sendOperation } from './scene.ts';

test('the table has every operation of the API', () => {
  const all = [...routes, ...computeRoutes];
  const literal = new Set(all.map(({ path }) => path));
  for (const { method, path, since, until = Number.POSITIVE_INFINITY } of all) {
    const pattern = new RegExp(`^${path.replaceAll(/:\w+(?:\{[^}]*\})?/g, '[^/]+')}$`);
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
