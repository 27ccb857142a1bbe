/** Configuration files of deployment tools: with each of them the service starts, uses Keystone and serves. */
import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { suite, test } from 'node:test';
import { startCommand } from '../manage/commands.ts';
import { freshDatabase } from '../support/engines.ts';
import { selfSigned } from './certificate.ts';
import { withStandIn } from './stand_in.ts';

/** For each file: the addresses to replace in the test, and the fields of its service user. */
const files: readonly {
  readonly name: string;
  readonly auth: string;
  readonly password: string;
  readonly domain: object;
}[] = [
  { name: 'kolla', auth: 'http://192.0.2.10:5000', password: 'qW7:eR=8#t;', domain: { id: 'default' } },
  {
    name: 'openstack-helm',
    auth: 'http://keystone-api.openstack.svc.cluster.local:5000',
    password: 'password',
    domain: { name: 'service' },
  },
  { name: 'devstack', auth: 'http://198.51.100.4/identity', password: 'secret', domain: { name: 'Default' } },
];

suite('drop-in', () => {
  for (const { name, auth, password, domain } of files) {
    test(name, async () => {
      const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-drop-in-'));
      const database = await freshDatabase('postgresql');
      try {
        await withStandIn(async (standIn) => {
          standIn.behaviour.password = password;
          standIn.behaviour.domain = domain;
          const text = await readFile(new URL(`../unit/config/files/${name}.conf`, import.meta.url), 'utf8');
          const etc = path.join(folder, 'etc');
          await mkdir(etc);
          await writeFile(path.join(etc, 'ca.pem'), selfSigned().cert);
          await writeFile(path.join(etc, 'policy.yaml'), '"placement:traits:list": "role:reader"\n');
          const own = text
            .replaceAll(auth, standIn.url)
            .replaceAll(/postgresql\S*/g, database.config.connection ?? '')
            .replaceAll('/var/log/kolla/placement', folder)
            .replace('/opt/stack/data/ca-bundle.pem', path.join(etc, 'ca.pem'))
            .replace('/etc/placement/policy.yaml', path.join(etc, 'policy.yaml'));
          const config = path.join(etc, 'placement.conf');
          await writeFile(config, own);
          const server = startCommand('placement-api', ['--config-file', config, '--port', '0'], folder);
          const [, url = ''] = await server.said(/listens on (\S+)\n/);
          const status = async (path: string, token?: string): Promise<number> => {
            const headers = { 'openstack-api-version': 'placement 1.39', ...(token ? { 'x-auth-token': token } : {}) };
            const response = await fetch(url + path, { headers });
            await response.arrayBuffer();
            return response.status;
          };
          const service = standIn.issue({ roles: ['service'], project: 'service' });
          const reader = standIn.issue({ roles: ['reader'], project: 'p1' });
          assert.deepEqual(
            [await status('/'), await status('/traits'), await status('/traits', 'nonsense')],
            [200, 401, 401],
          );
          assert.deepEqual(
            [await status('/resource_providers', service), await status('/traits', service)],
            [200, 403],
          );
          assert.deepEqual([await status('/resource_providers', reader), await status('/traits', reader)], [403, 200]);
          server.child.kill('SIGTERM');
          assert.equal((await server.ended).code, 0);
        });
      } finally {
        await database.drop();
        await rm(folder, { recursive: true });
      }
    });
  }
});
