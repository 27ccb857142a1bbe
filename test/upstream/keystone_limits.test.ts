/** The unified limits of a real Keystone are imported, and the service follows them. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { openService } from '../../src/start/service.ts';
import { withCommands } from '../manage/commands.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase } from '../support/postgresql.ts';
import { accepted, at, requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { type RealKeystone, startKeystone } from './keystone.ts';

const region = 'RegionOne';
const password = 'placement-password';

suite('Keystone', () => {
  let keystone: RealKeystone | undefined;
  let drop: (() => Promise<void>) | undefined;
  const call: RealKeystone['call'] = (...args) => {
    assert.ok(keystone !== undefined);
    return keystone.call(...args);
  };
  const make = async (path: string, kind: string, body: object): Promise<string> =>
    String(at(await call('POST', path, { [kind]: body }), kind, 'id'));

  before(async () => {
    const database = await createDatabase(await postgresqlServer());
    drop = database.drop;
    keystone = await startKeystone(database.url);
  });
  after(async () => {
    await keystone?.stop();
    await drop?.();
  });

  test('its limits are refused to a user without a role in the system, then imported, and followed', async () => {
    const domain_id = 'default';
    const nova = await make('/services', 'service', { type: 'compute', name: 'nova' });
    const user = await make('/users', 'user', { name: 'placement', domain_id, password });
    const [vision, robots] = [
      await make('/projects', 'project', { name: 'vision', domain_id }),
      await make('/projects', 'project', { name: 'robots', domain_id }),
    ];
    const ofService = { service_id: nova, region_id: region };
    const registered = [
      { ...ofService, resource_name: 'class:VCPU', default_limit: 20 },
      { ...ofService, resource_name: 'class:MEMORY_MB', default_limit: -1 },
      { ...ofService, resource_name: 'servers', default_limit: 10 },
      { ...ofService, resource_name: 'server_key_pairs', default_limit: 100 },
    ];
    await call('POST', '/registered_limits', { registered_limits: registered });
    const limits = [
      { ...ofService, project_id: vision, resource_name: 'class:VCPU', resource_limit: 8 },
      { ...ofService, project_id: robots, resource_name: 'servers', resource_limit: -1 },
    ];
    const made = await call('POST', '/limits', { limits });
    const idOf = (project: string): string => {
      const all = at(made, 'limits') as readonly unknown[]; // of the answer above
      return String(
        at(
          all.find((limit) => at(limit, 'project_id') === project),
          'id',
        ),
      );
    };

    const settings = `[keystone_authtoken]
auth_url = ${keystone?.url}
username = placement
password = ${password}
user_domain_id = default
`;
    await withCommands(
      'postgresql',
      'migrated',
      async ({ run, config }) => {
        const imported = () => run('placement-manage', 'limits', 'import', '--from-keystone');
        const refused = await imported();
        assert.equal(refused.code, 1);
        assert.match(refused.stderr, /needs a role in the system scope/);
        const reader = at(await call('GET', '/roles?name=reader'), 'roles', 0, 'id');
        await call('PUT', `/system/users/${user}/roles/${reader}`);

        const service = await openService(testConfig({ placementDatabase: config }));
        try {
          const send = requestsTo(service, 'placement 2.7');
          const limitOf = async (project: string, kind: string, name: string) =>
            at(accepted(await send('GET', `/limits/${project}`)).json, kind, name, 'limit');
          const first = await imported();
          assert.deepEqual([first.code, first.stderr], [0, '']);
          assert.match(first.stdout, /^Left out: server_key_pairs: /m);
          assert.match(first.stdout, /^3 changed, 0 unchanged, 1 left out\.$/m);
          assert.deepEqual(
            [await limitOf(vision, 'resources', 'VCPU'), await limitOf(vision, 'consumers', 'all')],
            [8, 10],
          );
          assert.deepEqual(
            [await limitOf(robots, 'resources', 'VCPU'), await limitOf(robots, 'consumers', 'all')],
            [20, null],
          );
          assert.equal(await limitOf(vision, 'resources', 'MEMORY_MB'), undefined);

          await call('PATCH', `/limits/${idOf(vision)}`, { limit: { resource_limit: 9 } });
          await call('DELETE', `/limits/${idOf(robots)}`);
          const second = await imported();
          assert.match(second.stdout, /^2 changed, 1 unchanged, 1 left out\.$/m);
          await until('the service has the new values', async () => {
            return (await limitOf(vision, 'resources', 'VCPU')) === 9;
          });
          assert.equal(await limitOf(robots, 'consumers', 'all'), 10);
        } finally {
          await service.close();
        }
      },
      settings,
    );
  });
});
