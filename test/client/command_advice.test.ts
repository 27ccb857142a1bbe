/** What the command advises can be typed as it is printed, and refusals are in the words of the command. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { shellWord } from '../../src/cli/shell_word.ts';
import { commandsOn } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const { run, fails, isWrongUsage } = commandsOn(() => server);

test('a value is one word of a shell', () => {
  for (const plain of ['gpu-2', 'ci/job-1', 'Müller', 'a.b:c=d@e']) assert.equal(shellWord(plain), plain);
  assert.equal(shellWord('Gruppe Müller'), "'Gruppe Müller'");
  assert.equal(shellWord("it's $HOME"), "'it'\\''s $HOME'");
  assert.equal(shellWord(''), "''");
});

test('names in advice are quoted, and those of the command line are filled in', async () => {
  await run('provider', 'create', 'rack 7');
  await run('inventory', 'set', 'rack 7', 'PGPU=4');
  const place = ['allocation', 'place', 'PGPU=1', '--project', 'Gruppe Müller'];
  await run(...place);
  await fails('conflict', /"placement allocation list 'rack 7'"[^\n]* "placement release --in-tree 'rack 7'"/, [
    'provider',
    'delete',
    'rack 7',
  ]);
  await run('limit', 'set', 'Gruppe Müller', 'PGPU=1');
  await fails('limited', /"placement limit show 'Gruppe Müller'"[^\n]*--project 'Gruppe Müller'"/, place);
  assert.equal(await run('undrain', 'rack 7'), 'No provider in the tree of rack 7 was drained.\n');
});

test('a wait that is too long is refused by its option, with the longest one', async () => {
  const wait = ['allocation', 'place', 'PGPU=1', '--project', 'ci', '--wait', '2h'];
  await fails(
    'wrongInput',
    /^placement: --wait: this service lets a claim wait for at most 1h \(\[placement\] max_wait\)\.\n$/,
    wait,
  );
});

test('custom names are checked before they are sent, and before the advice to make them', async () => {
  const refused = /"GPUS" is no name for a class of your own: .* CUSTOM_ and .*, such as CUSTOM_GPUS\.\n$/;
  await fails('wrongInput', refused, ['class', 'create', 'CUSTOM_FINE', 'GPUS']);
  assert.doesNotMatch(await run('class', 'list'), /CUSTOM_FINE/, 'none is made');
  await run('provider', 'create', 'advised');
  const nope = /"CUSTOM_nope" is no name for a trait of your own: .*, such as CUSTOM_NOPE\.\n$/;
  await fails('wrongInput', nope, ['trait', 'add', 'advised', 'CUSTOM_nope']);
  await fails('wrongInput', nope, ['trait', 'create', 'CUSTOM_nope']);
  await fails('wrongInput', /has capital letters, digits and _\.\n$/, ['trait', 'create', 'CUSTOM_']);
  await fails('wrongInput', /Create it first: placement trait create CUSTOM_NOPE/, [
    'trait',
    'add',
    'advised',
    'CUSTOM_NOPE',
  ]);
});

test('the error for an invalid total names the commands that close a host', async () => {
  for (const total of ['-2', '0']) {
    const message = new RegExp(
      `total must be a whole number from 1 to 2147483647, not "${total}"\\. To close a host use "placement drain"`,
    );
    await isWrongUsage(message, ['inventory', 'set', 'rack 7', `PGPU=${total}`]);
  }
  await isWrongUsage(/reserved must be a whole number from 0 to 2147483647/, [
    'inventory',
    'set',
    'rack 7',
    'PGPU:reserved=-1',
  ]);
  await isWrongUsage(/allocation_ratio must be a number above 0, not "1e999"/, [
    'inventory',
    'set',
    'rack 7',
    'PGPU:allocation_ratio=1e999',
  ]);
});
