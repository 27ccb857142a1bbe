/** The password of the service user is changed in Keystone and in the configuration, while the service serves. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { suite, test } from 'node:test';
import { startCommand, withCommands } from '../manage/commands.ts';
import { until } from '../support/until.ts';
import { servicePassword, settingsFor, withStandIn } from './stand_in.ts';

const newPassword = 'another-password';

for (const workers of [1, 2]) {
  suite(`with ${workers === 1 ? 'one process' : 'two workers'}`, () => {
    test('SIGHUP reads the password of the service user, and a configuration that is broken changes nothing', () =>
      withStandIn((standIn) =>
        withCommands(workers === 1 ? 'embedded' : 'postgresql', 'migrated', async ({ folder, configFile }) => {
          const file = path.join(folder, 'keystone.conf');
          const { username, userDomainName, projectName, projectDomainName } = settingsFor(standIn);
          const configure = (password: string) =>
            writeFile(
              file,
              `[api]
auth_strategy = keystone
workers = ${workers}
[keystone_authtoken]
auth_url = ${standIn.url}
username = ${username}
password = ${password}
user_domain_name = ${userDomainName}
project_name = ${projectName}
project_domain_name = ${projectDomainName}
http_request_max_retries = 0
`,
            );
          await configure(servicePassword);
          const server = startCommand('placement-api', ['--config-file', configFile, '--config-file', file], folder);
          const [, url = ''] = await server.said(/listens on (\S+)\n/);
          let log = '';
          server.child.stderr.on('data', (text: string) => {
            log += text;
          });
          /** The statuses of requests on new connections, which reach all workers. */
          const statuses = async (): Promise<readonly number[]> => {
            const headers = { connection: 'close' };
            const answers = Array.from({ length: 2 * workers }, async () => {
              const token = standIn.issue({ user: 'alice', roles: ['admin'], project: 'p' });
              return (await fetch(`${url}/resource_providers`, { headers: { ...headers, 'x-auth-token': token } }))
                .status;
            });
            return [...new Set(await Promise.all(answers))];
          };
          assert.deepEqual(await statuses(), [200]);

          // A password that Keystone refuses is not taken, and no request notices.
          await configure('wrong-password');
          server.child.kill('SIGHUP');
          await until('the log tells that Keystone refuses it', () =>
            /SIGHUP: [^"]* the service user of \[keystone_authtoken\] stays as it was, [^"]* Keystone does not accept the service user\./.test(
              log,
            ),
          );
          assert.ok(!log.includes('Now in force'));
          assert.equal(log.split('SIGHUP: ').length, 2, 'one line for each signal');
          standIn.revokeOwn();
          assert.deepEqual(await statuses(), [200]);

          // While Keystone is unavailable it is taken, and the log says that it was not checked.
          await configure(newPassword);
          await standIn.down();
          server.child.kill('SIGHUP');
          await until('the log tells that it was not tried', () =>
            /"warn"[^\n]*SIGHUP: [^"]* was read again and not tried yet, [^"]* Keystone cannot be reached at [^"]* Now in force: /.test(
              log,
            ),
          );
          await standIn.up();
          await configure(servicePassword);
          server.child.kill('SIGHUP');
          await until('the log tells that it was read', () =>
            /SIGHUP: [^"]* was read again, and [^"]* Now in force: \[keystone_authtoken\] password\./.test(log),
          );
          log = '';

          standIn.behaviour.password = newPassword;
          standIn.revokeOwn();
          assert.deepEqual(await statuses(), [503]);

          await writeFile(file, 'this is no configuration');
          server.child.kill('SIGHUP');
          await until('the log says that it is broken', () => /SIGHUP: the configuration stays as it was, /.test(log));
          assert.deepEqual(await statuses(), [503]);

          await configure(newPassword);
          server.child.kill('SIGHUP');
          await until('the log tells that it was read', () =>
            /SIGHUP: .* the service user of [^"]* was read again, and .* Now in force: \[keystone_authtoken\] password\./.test(
              log,
            ),
          );
          await until('all take it', async () => (await statuses()).every((status) => status === 200));
          if (workers > 1) {
            // A worker that starts now asks for a token of its own, by the password that SIGHUP read.
            const serving = () => [...server.log().matchAll(/"pid":(\d+),"msg":"This worker serves"/g)];
            process.kill(Number(serving()[0]?.[1]), 'SIGKILL');
            await until('its successor serves', () => serving().length === workers + 1);
            assert.deepEqual(await statuses(), [200]);
          }
          assert.ok(!log.includes(newPassword));
          server.child.kill('SIGTERM');
          assert.equal((await server.ended).code, 0);
        }),
      ));
  });
}
