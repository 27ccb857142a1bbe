import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import { ruleDefaults } from '../../src/access/policy/defaults.ts';
import { teamsPolicy } from '../../src/access/policy/teams.ts';
import { type Ended, runToEnd, withCommands } from '../manage/commands.ts';

async function withPolicy(policy: string, use: (run: (...args: string[]) => Promise<Ended>) => Promise<void>) {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-policy-'));
  const config = path.join(folder, 'placement.conf');
  try {
    // No database can be reached there. These commands need none.
    await writeFile(config, '[placement_database]\nconnection = postgresql://127.0.0.1:1/none\n');
    await writeFile(path.join(folder, 'policy.yaml'), policy);
    await use((...args) => runToEnd('placement-manage', ['--config-file', config, 'policy', ...args], folder));
  } finally {
    await rm(folder, { recursive: true });
  }
}

test('a group of commands suggests the command that a misspelled one may mean, and alone prints its help', async () => {
  await withPolicy('', async (run) => {
    const misspelled = await run('chek', 'placement:usages');
    assert.deepEqual(misspelled, {
      code: 2,
      stdout: '',
      stderr: "error: unknown command 'chek'\n(Did you mean check?)\n",
    });
    assert.match((await run('remove')).stderr, /unknown command 'remove'\n\(There are list, teams, check\.\)/);
    const alone = await run();
    assert.equal(alone.code, 0);
    assert.match(alone.stdout, /^Usage: placement-manage policy/);
  });
});

test('policy list prints a policy file of the rules in effect, with the source of each', async () => {
  await withPolicy('"placement:traits:list": role:reader or role:admin\nours: role:x and\n', async (run) => {
    const { code, stdout, stderr } = await run('list');
    assert.equal(code, 0);
    const lines = stdout.trim().split('\n');
    for (const { name } of ruleDefaults)
      assert.ok(
        lines.some((line) => line.startsWith(`"${name}": `)),
        name,
      );
    assert.ok(lines.includes('"placement:reshaper:reshape": "rule:service_api"'));
    assert.equal(
      lines[lines.indexOf('"placement:traits:list": "(role:reader or role:admin)"') - 1]?.replace(/\/\S*\//, ''),
      '# GET /traits; scope: project; policy.yaml, instead of "rule:admin_or_service_api"',
    );
    assert.match(stderr, /policy\.yaml: ours: The rule "role:x and" cannot be parsed, so it denies/);
  });
});

test('policy list prints only the requested rules', async () => {
  await withPolicy('ours: role:x\n"placement:usages": rule:ours\n', async (run) => {
    const names = async (...args: string[]) => {
      const { code, stdout } = await run('list', ...args);
      return [code, ...[...stdout.matchAll(/^"(.*?)": /gm)].map(([, name]) => name)];
    };
    assert.deepEqual(await names('--changed'), [0, 'placement:usages', 'ours']);
    assert.deepEqual(await names('ours', 'traits:list'), [
      0,
      'placement:traits:list',
      'placement:resource_providers:traits:list',
      'ours',
    ]);
    assert.deepEqual(await names('usages', '--changed'), [0, 'placement:usages']);
    const none = await run('list', 'traits:lst');
    assert.deepEqual([none.code, none.stdout], [3, '']);
    assert.match(
      none.stderr,
      /^placement-manage: There is no rule whose name has "traits:lst"\. Did you mean placement:traits:list\?/,
    );
  });
});

test('the output of policy list can be used as the policy file', async () => {
  let first = '';
  await withPolicy('ours: not role:x\n"placement:traits:list": rule:ours\n', async (run) => {
    first = (await run('list')).stdout;
  });
  await withPolicy(first, async (run) => {
    const rules = (text: string) => text.split('\n').filter((line) => !line.startsWith('#'));
    const { stdout, stderr } = await run('list');
    assert.deepEqual([rules(stdout), stderr], [rules(first), '']);
  });
});

test('policy check explains its result, and the exit code shows it', async () => {
  await withPolicy('', async (run) => {
    const reader = ['--roles', 'member,reader', '--project', 'p1'];
    const own = await run('check', 'placement:usages', ...reader);
    assert.equal(own.code, 0);
    assert.match(own.stdout, /^placement:usages: allowed\n/);
    assert.match(own.stdout, /^yes +role:reader \(roles: member, reader\)$/m);
    assert.match(own.stdout, /^no +role:admin \(roles: member, reader\)$/m);

    const other = await run('check', 'placement:usages', ...reader, '--target-project', 'p2');
    assert.equal(other.code, 1);
    assert.match(other.stdout, /^placement:usages: denied\n/);
    assert.match(other.stdout, /^no +project_id:%\(project_id\)s \(project_id: p1; asked for: p2\)$/m);

    const system = await run('check', 'placement:traits:list', '--roles', 'admin', '--system-scope', 'all');
    assert.equal(system.code, 1);
    assert.match(system.stdout, /^no +the rule is for scope project, the token for system$/m);
    assert.match(system.stdout, /^yes +role:admin \(roles: admin\)$/m);

    const unknown = await run('check', 'placement:nothing', '--roles', 'admin');
    assert.deepEqual([unknown.code, unknown.stdout], [3, '']);
    assert.equal(
      unknown.stderr,
      'placement-manage: There is no rule placement:nothing. "placement-manage policy list" prints all rules.\n',
    );
    for (const name of ['placement:usage', 'usages']) {
      const near = await run('check', name, ...reader);
      assert.equal(near.code, 3);
      assert.match(near.stderr, /Did you mean placement:usages\?/, name);
    }

    const noProject = await run('check', 'placement:usages', '--roles', 'reader');
    assert.deepEqual([noProject.code, noProject.stdout], [2, '']);
    assert.match(noProject.stderr, /^error: placement:usages compares the project of the token .*give --project/);
    assert.equal((await run('check', 'placement:usages', '--roles', 'reader', '--target-project', 'p')).code, 1);
    assert.equal((await run('check', 'placement:traits:list', '--roles', 'admin')).code, 0, 'it compares no project');

    assert.equal((await run('check')).code, 2);
  });
});

test('policy check explains a rule once, however often and however deep others refer to it', async () => {
  const rules = (count: number, text: (next: string) => string) =>
    Array.from({ length: count }, (_, index) => `r${index}: ${text(`rule:r${index + 1}`)}\n`).join('');
  const policy =
    `"placement:usages": rule:r0\n"placement:traits:list": rule:t0\n` +
    `${rules(30, (next) => `${next} and ${next}`)}r30: project_id:%(project_id)s\n` +
    `${rules(3000, (next) => next)
      .replaceAll('r', 't')
      .replaceAll('tule', 'rule')}t3000: role:x\n`;
  await withPolicy(policy, async (run) => {
    const doubled = await run('check', 'placement:usages', '--project', 'p1');
    assert.equal(doubled.code, 0);
    assert.match(doubled.stdout, /^yes +r30 \(see above\)$/m);
    assert.equal(doubled.stdout.match(/project_id: p1/g)?.length, 1);
    assert.equal((await run('check', 'placement:usages')).code, 2, 'it asks for the project');
    const long = await run('check', 'placement:traits:list', '--roles', 'x');
    assert.equal(long.code, 0);
    assert.match(long.stdout, /^yes +t99 \(rules in it are left out\)\n$/m);
  });
});

test('a rule that no request and no other rule uses is reported, with the rule that was probably meant', async () => {
  const policy =
    '"placement:trait:list": role:reader\nolder_api: role:x\nours: role:y\n"placement:usages": rule:ours\n' +
    'default: "!"\n"rule:admin_api": role:boss\n';
  await withPolicy(policy, async (run) => {
    const { code, stderr } = await run('check', 'placement:traits:list', '--roles', 'reader');
    assert.equal(code, 1);
    assert.deepEqual(
      stderr.replaceAll(/\/\S*\//g, '').split('\n'),
      [
        'The policy rule placement:trait:list of policy.yaml has no effect: no request and no other rule asks for it. Did you mean placement:traits:list?',
        'The policy rule older_api of policy.yaml has no effect: no request and no other rule asks for it.',
        '',
      ],
      'the other rules are used',
    );
  });
});

test('a broken policy file is reported with line and column', async () => {
  await withPolicy('a: role:x\nb: [\n', async (run) => {
    const { code, stdout, stderr } = await run('list');
    assert.deepEqual([code, stdout], [78, '']);
    assert.match(stderr, /^placement-manage: \S+\/policy\.yaml:3:1: .* a bracket before it is not closed\.\n$/);
  });
});

test('policy teams prints a policy file, and policy check explains it for the owner of a consumer', async () => {
  await withCommands('postgresql', 'migrated', async ({ folder, run, withDatabase }) => {
    const teams = await run('placement-manage', 'policy', 'teams');
    assert.deepEqual([teams.code, teams.stdout, teams.stderr], [0, teamsPolicy(), '']);
    await writeFile(path.join(folder, 'policy.yaml'), teams.stdout);
    await withDatabase(async ({ kysely }) => {
      await sql`insert into projects (external_id) values ('ci')`.execute(kysely);
      await sql`insert into users (external_id) values ('ada')`.execute(kysely);
      await sql`insert into consumers (uuid, project_id, user_id, generation)
        select ${consumer}, p.id, u.id, 1 from projects p, users u`.execute(kysely);
    });
    const check = (rule: string, project: string, uuid = consumer) =>
      run('placement-manage', 'policy', 'check', rule, '--roles', 'member', '--project', project, '--consumer', uuid);
    const own = await check('placement:allocations:delete', 'ci');
    assert.deepEqual([own.code, own.stderr], [0, '']);
    assert.match(own.stdout, /\nThe request is about the owner of the consumer: project ci\.\n$/);
    const foreign = await check('placement:allocations:delete', 'web');
    assert.equal(foreign.code, 1);
    assert.match(foreign.stdout, /project_id:%\(project_id\)s \(project_id: web; asked for: ci\)/);
    const absent = await check('placement:allocations:delete', 'ci', consumer.replace('1', '2'));
    assert.notEqual(absent.code, 0);
    assert.match(absent.stderr, /there is no consumer 2/);
  });
});

const consumer = '10000000-0000-4000-8000-000000000000';
