/** docs/kolla.md: the configurations of kolla-ansible and openstack-helm, with what the document puts over them, and the images. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { chmod, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { suite, test } from 'node:test';
import { parse } from 'yaml';
import { load } from '../../src/config/load.ts';
import { checkAuthentication } from '../../src/start/startup.ts';
import { project } from '../client/documentation.ts';
import { runToEnd, startCommand } from '../manage/commands.ts';
import { withEmptyDatabase } from '../support/engines.ts';
import { freePort } from '../support/free_port.ts';
import { inFolder } from '../support/in_folder.ts';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';

const document = await readFile(path.join(project, 'docs/kolla.md'), 'utf8');
const blocks = Array.from(document.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm), ([, language, text = '']) => ({
  language,
  text,
}));

/** The only block in a language that has a text. */
function block(language: string, part: string): string {
  const [found, ...others] = blocks.filter((each) => each.language === language && each.text.includes(part));
  assert.ok(found !== undefined && others.length === 0, `one block in ${language} has ${part}`);
  return found.text;
}

/** What kolla-ansible's role makes of its template, with values of an installation: these options, in these sections. */
const ofKolla = (logFile: string): string => `[DEFAULT]
debug = False
log_file = ${logFile}
state_path = /var/lib/placement
[oslo_middleware]
enable_proxy_headers_parsing = True
[oslo_concurrency]
lock_path = /var/lib/placement/tmp
[placement_database]
connection = mysql+pymysql://placement:OldPassword@10.0.0.250:3306/placement
connection_recycle_time = 10
max_overflow = 1000
max_pool_size = 1
max_retries = -1
[cache]
backend = oslo_cache.memcache_pool
enabled = True
memcache_servers = 10.0.0.11:11211,10.0.0.12:11211
[keystone_authtoken]
service_type = placement
www_authenticate_uri = http://10.0.0.250:5000
auth_url = http://10.0.0.250:5000
auth_type = password
project_domain_id = default
user_domain_id = default
project_name = service
username = placement
password = ServicePassword
cafile =
region_name = RegionOne
memcache_security_strategy = ENCRYPT
memcache_secret_key = Secret
memcached_servers = 10.0.0.11:11211,10.0.0.12:11211
[oslo_policy]
policy_file = policy.yaml
`;

suite('docs/kolla.md', () => {
  test("kolla-ansible's configuration with the options of the document serves, and logs in the form of oslo.log", () =>
    withEmptyDatabase(async (url) => {
      await inFolder(async (folder) => {
        const [own, over, log] = ['own.conf', 'over.conf', 'placement-api.log'].map((name) => path.join(folder, name));
        assert.ok(own !== undefined && over !== undefined && log !== undefined);
        await writeFile(own, ofKolla(log));
        await writeFile(path.join(folder, 'policy.yaml'), '{}\n');
        const values: Readonly<Record<string, string>> = {
          api_interface_address: '127.0.0.1',
          placement_api_listen_port: `${await freePort()}`,
          placement_api_workers: '2',
          placement_database_password: 'NewPassword',
        };
        const filled = block('ini', '[api]').replace(/\{\{ (\w+) \}\}/g, (all, name: string) => values[name] ?? all);
        const named = 'postgresql://placement:NewPassword@db.example.com/placement';
        assert.ok(filled.includes(`connection = ${named}\n`) && !filled.includes('{{'));

        // Later files win, as the options of kolla's operator do in the file that kolla-ansible puts together.
        await writeFile(over, filled);
        const { config, warnings } = load({ configFiles: [own, over], env: {}, home: '/', cwd: '/' });
        assert.deepEqual(warnings, []);
        checkAuthentication(config);
        assert.deepEqual(
          [
            config.placementDatabase.connection,
            config.placementDatabase.maxPoolSize,
            config.api.workers,
            config.default.useJson,
          ],
          [named, 10, 2, false],
        );

        await writeFile(over, filled.replace(named, url));
        const args = ['--config-file', own, '--config-file', over];
        // As kolla's start script does in the container that it starts first, and in the upgrade.
        for (const command of ['sync', 'online_data_migrations']) {
          const { code, stderr } = await runToEnd('placement-manage', [...args, 'db', command], folder);
          assert.equal(code, 0, stderr);
        }
        const server = startCommand('placement-api', args, folder);
        const [, address = ''] = await server.said(/listens on (\S+)\n/);
        assert.equal(address, `http://127.0.0.1:${values.placement_api_listen_port}`);
        assert.equal((await fetch(address)).status, 200, 'the health check of kolla');
        assert.equal((await fetch(`${address}/resource_providers`)).status, 401);
        const line =
          /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ INFO placement\.requestlog \[\S+ req-\S+ .*\] \S+ "GET \/resource_providers" status: 401/m;
        await until('the log has the request', async () => line.test(await readFile(log, 'utf8')));
        server.child.kill('SIGTERM');
        assert.equal((await server.ended).code, 0);

        const alone = await runToEnd('placement-api', ['--config-file', own], folder);
        assert.equal(alone.code, 78);
        assert.match(alone.stderr, /MySQL and MariaDB are not supported/);
        assert.ok(!alone.stderr.includes('OldPassword'));
      });
    }));

  test('the options for TLS are the files that kolla-ansible copies', () => {
    const { config } = load({ configFiles: [], env: variables(block('ini', '[ssl]')), home: '/', cwd: '/' });
    assert.deepEqual(config.ssl, {
      certFile: '/etc/placement/certs/placement-cert.pem',
      keyFile: '/etc/placement/certs/placement-key.pem',
    });
  });

  test('the start script runs the service as its user, whatever is meant for Apache or uWSGI', {
    skip: (process.getuid?.() !== 0 || spawnSync('setpriv', ['--version']).status !== 0) && 'needs setpriv, as root',
  }, async () => {
    await inFolder(async (folder) => {
      await chmod(folder, 0o755);
      // A user that is on every machine, in the place of kolla's.
      const text = block('sh', 'placement-in-kolla:').replace(
        /--re(.)id=placement/g,
        (_all, kind) => `--re${kind}id=65534`,
      );
      const script = text.replace('--init-groups', '--clear-groups');
      await writeFile(path.join(folder, 'apache2'), script, { mode: 0o755 });
      await writeFile(path.join(folder, 'placement-api'), '#!/bin/sh\necho "$(id -u) $# arguments"\n', { mode: 0o755 });
      const env = { PATH: `${folder}:/usr/bin:/bin` };
      const run = (...command: readonly string[]) => {
        const [program = '', ...args] = command;
        return execFileSync(program, args, { env, encoding: 'utf8' });
      };
      assert.equal(run('apache2', '-DFOREGROUND'), '65534 0 arguments\n');
      const unprivileged = ['setpriv', '--reuid=65533', '--regid=65533', '--clear-groups'];
      assert.equal(run(...unprivileged, 'apache2', '/etc/placement/placement-api-uwsgi.ini'), '65533 0 arguments\n');
    });
  });

  test("openstack-helm's configuration with the values of the document is one that the service takes", async () => {
    await inFolder(async (folder) => {
      const values: unknown = parse(block('yaml', 'placement_db_sync'));
      // The defaults of the chart, and what it fills in.
      const chart: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
        DEFAULT: { debug: false, use_syslog: false, log_config_append: '/etc/placement/logging.conf' },
        placement_database: { connection: null },
        keystone_authtoken: {
          service_token_roles: 'service',
          service_token_roles_required: true,
          auth_version: 'v3',
          auth_type: 'password',
          memcache_security_strategy: 'ENCRYPT',
          service_type: 'placement',
          auth_uri: 'http://keystone-api:5000/v3',
          auth_url: 'http://keystone-api:5000/v3',
          os_region_name: 'RegionOne',
          project_name: 'service',
          project_domain_name: 'service',
          user_domain_name: 'service',
          username: 'placement',
          password: 'password',
          memcached_servers: 'memcached:11211',
          memcache_secret_key: 'Secret',
        },
      };
      const over = Object(at(values, 'conf', 'placement'));
      const sections = [...new Set([...Object.keys(chart), ...Object.keys(over)])].map((section) => {
        const options = { ...chart[section], ...over[section] };
        const lines = Object.entries(options).flatMap(([name, value]) =>
          value === null ? [] : [`${name} = ${value}`],
        );
        return [`[${section}]`, ...lines].join('\n');
      });
      const file = path.join(folder, 'placement.conf');
      await writeFile(file, `${sections.join('\n')}\n`);
      const { config, warnings } = load({ configFiles: [file], env: {}, home: '/', cwd: '/' });
      assert.deepEqual(warnings, []);
      checkAuthentication(config);
      assert.deepEqual(
        [config.api.host, config.api.port, config.placementDatabase.connection, config.default.logFile],
        ['0.0.0.0', 8778, 'postgresql://placement:PASSWORD@db.example.com/placement', undefined],
      );
      assert.equal(at(values, 'images', 'tags', 'placement'), at(values, 'images', 'tags', 'placement_db_sync'));
      assert.ok(Number(at(values, 'pod', 'lifecycle', 'termination_grace_period', 'api', 'timeout')) > 29);
    });
  });

  test('the images take what the image of deploy/Dockerfile has', async () => {
    const dockerfile = await readFile(path.join(project, 'deploy/Dockerfile'), 'utf8');
    const [kolla, helm] = [block('dockerfile', 'placement-in-kolla'), block('dockerfile', '/usr/local/bin/uwsgi')];
    const { version } = JSON.parse(await readFile(path.join(project, 'package.json'), 'utf8'));
    for (const each of [kolla, helm]) assert.ok(each.includes(`FROM placement:${version}`));
    const links = /for command in ([\w -]+); do \\\s+ln -s "(\S+)\/\$command\.js"/.exec(dockerfile);
    assert.ok(links?.[1] !== undefined && kolla.includes(`for name in ${links[1]}; do`), 'the same programs');
    assert.ok(kolla.includes(`ln -sf ${links[2]}/$name.js `), 'at the same place');
    assert.ok(dockerfile.includes('USER placement\n') && helm.trimEnd().endsWith('USER placement'));
  });
});

/** The variables of the environment for the options of a file. */
function variables(ini: string): Readonly<Record<string, string>> {
  const found: Record<string, string> = {};
  let section = '';
  for (const line of ini.split('\n')) {
    section = /^\[(\w+)\]$/.exec(line)?.[1] ?? section;
    const [, name, value] = /^(\w+) = (.*)$/.exec(line) ?? [];
    if (name !== undefined && value !== undefined) found[`OS_${section}__${name}`.toUpperCase()] = value;
  }
  return found;
}
