import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mustFail, placement } from './command.ts';
import { type KeystoneServer, startKeystone } from './keystone_server.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
let keystone: KeystoneServer;
before(async () => {
  server = await startServer();
  keystone = await startKeystone({ placementUrl: server.url });
});
after(async () => {
  await keystone.close();
  await server.close();
});

/** Checks that this environment is not enough to reach the service. */
const isWrong = (expected: RegExp, env: Readonly<Record<string, string>>) =>
  mustFail(expected, ['provider', 'list'], env, 'wrongUsage');

test('without a URL or credentials the command says what to set', async () => {
  await isWrong(/URL of the placement service is missing.*OS_ENDPOINT=.*OS_TOKEN=admin.*OS_AUTH_URL/, {});
  await isWrong(/The credentials for .* are missing/, { OS_ENDPOINT: server.url });
  await isWrong(/The credentials are missing\. Set OS_USERNAME/, { OS_AUTH_URL: keystone.url });
  const nobody = { OS_AUTH_URL: keystone.url, OS_USERNAME: 'nova' };
  await isWrong(/The password of nova is missing\. Set OS_PASSWORD/, nobody);
  await isWrong(/is no URL\. Write it as http:/, {
    OS_ENDPOINT: 'localhost',
    OS_TOKEN: 'admin',
  });
});

test('with the environment of the OpenStack client the command finds the service through Keystone', async () => {
  const openrc = {
    OS_AUTH_URL: `${keystone.url}/v3`,
    OS_USERNAME: 'nova',
    OS_PASSWORD: 'secret',
    OS_PROJECT_NAME: 'service',
    OS_USER_DOMAIN_NAME: 'Default',
    OS_PROJECT_DOMAIN_NAME: 'Default',
    OS_REGION_NAME: 'RegionOne',
    OS_INTERFACE: 'publicURL',
    OS_TOKEN: '',
  };
  const { code, stdout, stderr } = await placement(['provider', 'list', '--json'], openrc);
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), []);
  assert.equal(server.seen.length, 1);
  await mustFail(/does not let nova in/, ['provider', 'list'], { ...openrc, OS_PASSWORD: 'wrong' }, 'forbidden');
  await mustFail(
    /no public endpoint of placement in region Nowhere/,
    ['provider', 'list', '--os-region-name', 'Nowhere'],
    openrc,
    'wrongUsage',
  );
});
