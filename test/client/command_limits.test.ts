import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cells, commandsOn, hostedPlacement } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const commands = commandsOn(() => server);

/** Runs a command line that must succeed. @returns the cells of the rows of its table */
const run = async (...args: readonly string[]) => cells(await commands.run(...args));

test('limits are set, listed, shown and deleted; what a command does not name stays', async () => {
  assert.deepEqual(await run('limit', 'list'), []);
  assert.deepEqual(await run('limit', 'set', 'ci', 'PGPU=20', '--consumers', 'JOB=50'), [
    ['ci', 'PGPU', '0', '20', 'project'],
    ['ci', 'consumers JOB', '0', '50', 'project'],
  ]);
  assert.deepEqual(await run('limit', 'set', '--default', 'PGPU=4', 'VCPU=8'), [
    ['PGPU', '4'],
    ['VCPU', '8'],
  ]);
  assert.deepEqual(await run('limit', 'set', 'ci', 'VCPU=none', '--consumers', 'all=9', '--remove', 'JOB'), [
    ['ci', 'PGPU', '0', '20', 'project'],
    ['ci', 'VCPU', '0', 'none', 'project'],
    ['ci', 'consumers all', '0', '9', 'project'],
  ]);
  assert.deepEqual(await run('limit', 'show', 'web'), [
    ['web', 'PGPU', '0', '4', 'default'],
    ['web', 'VCPU', '0', '8', 'default'],
  ]);
  assert.equal((await run('limit', 'list')).length, 3);
  assert.deepEqual(await run('limit', 'show', '--default'), [
    ['PGPU', '4'],
    ['VCPU', '8'],
  ]);
  assert.equal(
    await commands.run('limit', 'delete', 'ci'),
    'The limits of project ci are deleted; the defaults hold.\n',
  );
  assert.equal(await commands.run('limit', 'delete', '--default'), 'The default limits are deleted.\n');
  assert.deepEqual(await run('limit', 'show', 'ci'), []);
  await commands.fails('wrongInput', /no limits of project ci/, ['limit', 'delete', 'ci']);
  await commands.fails('wrongInput', /CUSTOM_X/, ['limit', 'set', 'ci', 'CUSTOM_X=1']);
  await commands.isWrongUsage(/nothing to set/, ['limit', 'set', 'ci']);
  await commands.isWrongUsage(/name a project/, ['limit', 'set', 'PGPU=1']);
  await commands.isWrongUsage(/name a project/, ['limit', 'show']);
  await commands.isWrongUsage(/NAME=NUMBER/, ['limit', 'set', 'ci', 'PGPU=x']);
  await commands.isWrongUsage(/such as JOB=10 or all=10/, ['limit', 'set', 'ci', '--consumers', '10']);
  await commands.isWrongUsage(/given twice/, ['limit', 'set', 'ci', 'PGPU=1', 'PGPU=2']);
  await commands.isWrongUsage(/lifts a default/, ['limit', 'set', '--default', 'PGPU=none']);
});

test('a limit of a project whose name is nearly that of another one is set, with a question', async () => {
  await commands.run('limit', 'set', 'robots', 'PGPU=3');
  await commands.run('limit', 'set', 'robots', 'PGPU=4');
  await commands.run('limit', 'set', 'vision-1', 'PGPU=3');
  await commands.run('limit', 'set', 'vision-2', 'PGPU=3'); // of a series
  const { code, stdout, stderr } = await hostedPlacement(['limit', 'set', 'robtos', 'PGPU=3'], commands.env());
  assert.equal(code, 0);
  assert.match(stdout, /robtos/);
  assert.match(
    stderr,
    /^Project robtos has no consumers\. Is it robots\? "placement limit delete robtos" takes this back\.\n$/,
  );
});
