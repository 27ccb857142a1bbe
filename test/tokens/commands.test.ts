/** `placement-manage token`, on each engine, also while an embedded database is served. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { suite, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { lockFolder } from '../../db/engine/embedded_folder.ts';
import { type CommandWorld, startCommand, withCommands } from '../manage/commands.ts';
import { engines } from '../support/engines.ts';
import { at } from '../support/requests.ts';
import { until } from '../support/until.ts';

const withTokens = async (
  engine: (typeof engines)[number],
  use: (world: CommandWorld, configFile: string) => Promise<void>,
): Promise<void> =>
  withCommands(engine, 'migrated', async (world) => {
    const { connection, embeddedPath } = world.config;
    const configFile = path.join(world.folder, 'tokens.conf');
    const where = connection === undefined ? `embedded_path = ${embeddedPath}` : `connection = ${connection}`;
    await writeFile(configFile, `[placement_database]\n${where}\n[api]\nauth_strategy = tokens\nport = 0\n`);
    await use(world, configFile);
  });

const create = async ({ run }: CommandWorld, ...more: readonly string[]) => {
  const ended = await run('placement-manage', 'token', 'create', '--user', 'ada', '--project', 'ci', ...more);
  assert.equal(ended.code, 0, ended.stderr);
  const [, id = ''] = /^Token (\S+) of user ada in project ci/.exec(ended.stderr) ?? [];
  return { token: ended.stdout.trim(), id };
};

for (const engine of engines) {
  suite(`on ${engine}`, () => {
    test('tokens are made, listed and revoked before and while the service serves', async () => {
      await withTokens(engine, async (world, configFile) => {
        const first = await create(world, '--role', 'admin', '--expires-in', '90d');
        assert.match(first.token, /^plc_/);
        const api = startCommand('placement-api', ['--config-file', configFile], world.folder);
        const [, url = ''] = await api.said(/listens on (\S+)/);
        const statusOf = async (token: string) => {
          const headers = { authorization: `Bearer ${token}`, 'openstack-api-version': 'placement 2.7' };
          return (await fetch(`${url}/tokens`, { headers })).status;
        };
        assert.equal(await statusOf(first.token), 200);
        const second = await create(world, '--role', 'reader', '--role', 'member');
        assert.equal(await statusOf(second.token), 403);
        const listed = await world.run('placement-manage', 'token', 'list', '--json');
        assert.deepEqual(
          [0, 1].map((index) => at(JSON.parse(listed.stdout), index, 'id')).toSorted(),
          [first.id, second.id].toSorted(),
        );
        const drawn = await world.run('placement-manage', 'token', 'list');
        assert.match(drawn.stdout, /\| created +\| ends/);
        assert.ok(drawn.stdout.indexOf(first.id) < drawn.stdout.indexOf(second.id), 'the oldest one is first');
        for (const { id, token } of [first, second]) {
          assert.ok(drawn.stdout.includes(id) && drawn.stdout.includes(token.slice(0, 10)));
          assert.ok(!`${drawn.stdout}${listed.stdout}`.includes(token.slice(0, 14)));
        }
        if (engine === 'embedded') {
          const { mode } = await stat(path.join(world.config.embeddedPath ?? '', 'operator.sock'));
          assert.equal(mode & 0o077, 0);
          const roles = Array.from({ length: 101 }, (_, index) => ['--role', `r${index}`]).flat();
          const wanted = ['--user', 'u', '--project', 'p', ...roles];
          const refused = await world.run('placement-manage', 'token', 'create', ...wanted);
          assert.equal(refused.code, 1);
          assert.match(
            refused.stderr,
            /serves the embedded database refuses req-\S+: .*roles: there are more than 100\. \[POST \/tokens: 400 /,
          );
        }
        const revoked = await world.run('placement-manage', 'token', 'revoke', second.id);
        assert.deepEqual(
          [revoked.code, revoked.stdout],
          [0, `Token ${second.id} is revoked. Within 5 s no process takes it any more.\n`],
        );
        const again = await world.run('placement-manage', 'token', 'revoke', second.id);
        assert.deepEqual([again.code, /there is no token/.test(again.stderr)], [1, true]);
        api.child.kill('SIGTERM');
        assert.equal((await api.ended).code, 0);
        const left = await world.run('placement-manage', 'token', 'list', '--json');
        assert.equal(JSON.parse(left.stdout).length, 1);
      });
    });
  });
}

test('an error about a flag names what is wrong', async () => {
  await withTokens('embedded', async ({ run }) => {
    const right = ['--user', 'u', '--project', 'p', '--role', 'member'];
    for (const [args, says] of [
      [['create', '--user', 'u', '--project', 'p'], '--role'],
      [['create', ...right, '--expires-in', '90x'], '45s, 30m'],
      [['create', ...right, '--expires-in', '4000d'], '3650d'],
      [['create', ...right, '--role', ''], '1 to 255'],
      [['create', ...right, '--user', 'u'.repeat(256)], '--user'],
      [['create', ...right, '--project', ''], 'this one has 0'],
      [['revoke', 'plc_abc'], 'not the token itself'],
      [['remove'], "unknown command 'remove'"],
    ] as const) {
      const { code, stderr } = await run('placement-manage', 'token', ...args);
      assert.notEqual(code, 0);
      assert.ok(stderr.includes(says), stderr);
    }
  });
});

test('a section [jwt:NAME] that is wrong ends the start, with its place', async () => {
  await withTokens('embedded', async ({ folder }, configFile) => {
    const start = async (section: string) => {
      const file = path.join(folder, 'jwt.conf');
      await writeFile(file, section);
      return startCommand('placement-api', ['--config-file', configFile, '--config-file', file], folder).ended;
    };
    const right = 'issuer = https://i.example\naudience = placement\nproject_claim = project\nroles = member\n';
    for (const [section, says] of [
      [`[jwt:one]\n${right}requires = /a=b\n`, /jwt\.conf:6: \[jwt:one\] requires is no option/],
      [`[jwt:one]\n${right}require = a\n`, /\[jwt:one\]: require = "a"/],
      [`[jwt:one]\n${right}require = /a=b\nrequire = /c=d\n`, /jwt\.conf:7: \[jwt:one\] require is there already/],
      ['[jwt:one]\n', /\[jwt:one\]: issuer is missing/],
      ['[jwt:__proto__]\n', /\[jwt:__proto__\]: issuer is missing/],
      [`[jwt:one]\n${right}[jwt:two]\n${right}`, /that of another section/],
    ] as const) {
      const { code, stderr } = await start(section);
      assert.notEqual(code, 0);
      assert.match(stderr, says);
    }
    const shown = startCommand(
      'placement-api',
      ['--config-file', configFile, '--config-file', path.join(folder, 'jwt.conf'), '--show-config'],
      folder,
    );
    assert.match((await shown.ended).stdout, /\[jwt:two\]\n\n# The issuer/);
  });
});

test('a role that no rule of the policy names gives a warning, and the token is made', async () => {
  await withTokens('embedded', async (world) => {
    const wanted = ['--user', 'u', '--project', 'p', '--role', 'admin'];
    const make = async (...more: readonly string[]) => {
      const ended = await world.run('placement-manage', 'token', 'create', ...wanted, ...more);
      assert.equal(ended.code, 0, ended.stderr);
      assert.match(ended.stdout, /^plc_\S+\n$/);
      return ended.stderr;
    };
    assert.match(await make('--role', 'raeder'), /Warning: .* asks for the role raeder\. Did you mean reader\?/);
    assert.doesNotMatch(await make('--role', 'Reader', '--role', 'service'), /Warning/);
    assert.match(
      await make('--role', 'member'),
      /Warning: no rule of the policy in force \(\S+\) asks for the role member\./,
    );
    await writeFile(path.join(world.folder, 'policy.yaml'), '"placement:usages": "not (role:member or role:admin)"\n');
    await writeFile(world.configFile, '[oslo_policy]\npolicy_file = policy.yaml\n', { flag: 'a' });
    assert.doesNotMatch(await make('--role', 'member'), /Warning/);
  });
});

test('a token is made although the service is starting, or another command has the embedded database open', async () => {
  await withTokens('embedded', async (world, configFile) => {
    const release = await lockFolder(world.config.embeddedPath ?? '');
    const waiting = create(world, '--role', 'admin');
    await setTimeout(1_500);
    release();
    await waiting;
    const api = startCommand('placement-api', ['--config-file', configFile], world.folder);
    // Asking for the lock would make the start of the service fail.
    const runsSince = path.join(world.config.embeddedPath ?? '', 'postgresql', 'postmaster.pid');
    await until('the service has the database', () => existsSync(runsSince));
    await create(world, '--role', 'admin');
    api.child.kill('SIGTERM');
    assert.equal((await api.ended).code, 0);
  });
});

test('a process that has the embedded database open is reported after ten seconds', async () => {
  await withTokens('embedded', async (world) => {
    const release = await lockFolder(world.config.embeddedPath ?? '');
    const { code, stderr } = await world.run('placement-manage', 'token', 'list');
    release();
    assert.notEqual(code, 0);
    assert.match(stderr, /is in use by another process.* try again a little later/s);
  });
});

test('the list in JSON can be read whatever a user is called', () =>
  withCommands('postgresql', 'migrated', async ({ run }) => {
    const user = 'a\u202eb\u0085c';
    const made = await run('placement-manage', 'token', 'create', '--user', user, '--project', 'p', '--role', 'reader');
    assert.equal(made.code, 0, made.stderr);
    const { stdout } = await run('placement-manage', 'token', 'list', '--json');
    assert.equal(at(JSON.parse(stdout), 0, 'user_id'), user);
    assert.ok(!stdout.includes('\u202e'), 'it would change the direction of a terminal');
  }));
