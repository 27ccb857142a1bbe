/** The forms in which a result is printed: tables, JSON, CSV and values, whole or some columns. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { after, before, test } from 'node:test';
import { widthOf } from '../../src/cli/table.ts';
import { consumerUuid } from '../../src/client/index.ts';
import { quickStart } from '../support/quick_start.ts';
import { commandsOn, placement, program } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
  await run('provider', 'create', 'a "rack", 1', '--uuid', rack);
  await run('provider', 'create', 'host-1', '--uuid', host, '--parent', rack);
  await run('inventory', 'set', 'host-1', 'VCPU=8', 'MEMORY_MB=1024');
  await run('trait', 'add', 'host-1', 'HW_CPU_X86_VMX', 'HW_CPU_X86_AVX2');
});
after(() => server.close());

const rack = '0057c0de-0000-4000-8000-000000000001';
const host = '0057c0de-0000-4000-8000-000000000002';

const { env, run, isWrongUsage } = commandsOn(() => server);

test('a list is printed as CSV, as values, and with some columns only', async () => {
  const list = ['provider', 'list', '--in-tree', 'host-1'];
  const csv = await run(...list, '--format', 'csv');
  assert.deepEqual(csv.split('\n').toSorted(), [
    '',
    `"a ""rack"", 1",${rack},0,`,
    `host-1,${host},2,"a ""rack"", 1"`,
    'name,uuid,generation,parent',
  ]);
  assert.deepEqual((await run(...list, '--format=value', '-c', 'uuid')).split('\n').toSorted(), ['', rack, host]);
  const both = await run('provider', 'list', '--name', 'host-1', '--format', 'value', '-c', 'uuid', '--column', 'name');
  assert.equal(both, `host-1 ${host}\n`, 'in the order of the table');
  const drawn = await run('provider', 'list', '--name', 'host-1', '-c', 'name');
  assert.equal(drawn, '+--------+\n| name   |\n+--------+\n| host-1 |\n+--------+\n');
  const json = await run('provider', 'list', '--name', 'host-1', '--json', '-c', 'name', '-c', 'generation');
  assert.deepEqual(JSON.parse(json), [{ name: 'host-1', generation: 2 }]);
  const whole = ['provider', 'list', '--name', 'host-1'];
  assert.equal(await run(...whole, '--format', 'json'), await run(...whole, '--json'));
  assert.equal(await run(...whole, '--format', 'csv'), await run(...whole, '--csv'));
  assert.equal(await run('--format', 'value', 'provider', 'list', '--name', 'none'), '');
  assert.equal(await run('provider', 'list', '--name', 'none', '--format', 'csv'), 'name,uuid,generation,parent\n');
});

test('a single thing has fields, and the tables below it columns', async () => {
  const show = ['provider', 'show', 'host-1'];
  assert.equal(await run(...show, '--format', 'value', '-c', 'uuid'), `${host}\n`);
  assert.equal(
    await run(...show, '-c', 'traits', '--format', 'csv'),
    'field,value\ntraits,HW_CPU_X86_AVX2\ntraits,HW_CPU_X86_VMX\n',
  );
  assert.deepEqual(JSON.parse(await run(...show, '--json', '-c', 'name', '-c', 'traits')), {
    name: 'host-1',
    traits: ['HW_CPU_X86_AVX2', 'HW_CPU_X86_VMX'],
  });
  const inventories = await run(...show, '--format', 'value', '-c', 'class', '-c', 'capacity');
  assert.deepEqual(inventories.trim().split('\n').toSorted(), ['MEMORY_MB 1024', 'VCPU 8']);
  assert.match(await run(...show, '--format', 'csv'), /^field,value\nname,host-1\n/);
  assert.equal(await run('provider', 'tree', 'host-1', '--format', 'value', '-c', 'provider'), 'a "rack", 1\nhost-1\n');
});

test('what is printed for people alone is not in CSV and values', async () => {
  assert.equal(await run('candidate', 'list', 'VCPU=9', '--format', 'csv'), '#,provider,uuid,takes,used / capacity\n');
  assert.equal(await run('class', 'create', 'CUSTOM_A', '--format', 'value'), '');
  const place = ['allocation', 'place', 'VCPU=1', '--project', 'ci', '--consumer', 'job-1'];
  const placed = await run(...place, '--format', 'value', '-c', 'consumer', '-c', 'provider', '-c', 'resources');
  assert.equal(placed, `${consumerUuid('ci', 'job-1')} host-1 VCPU=1\n`);
  assert.match(
    await run('candidate', 'why', 'VCPU=9', '--format', 'csv'),
    /^condition,alone,left,without,largest\n"?resources=VCPU:9/,
  );
});

test('a column that is not there is refused with those that are, before anything is written', async () => {
  await isWrongUsage(/There is no column size\. Those there are: name, uuid, generation, parent\./, [
    ...['provider', 'list', '-c', 'size'],
  ]);
  await isWrongUsage(/No table has the columns uuid, class together/, [
    ...['provider', 'show', 'host-1', '-c', 'uuid', '-c', 'class'],
  ]);
  await isWrongUsage(/--format <format>.*Allowed choices are table, json, csv, value/, [
    'provider',
    'list',
    '--format',
    'xml',
  ]);
  await isWrongUsage(/cannot be used with option '--format/, ['provider', 'list', '--json', '--format', 'csv']);
  await isWrongUsage(/cannot be used with option '--json/, ['provider', 'list', '--json', '--csv']);
  await isWrongUsage(/'--format <format>' is given twice/, ['--format', 'csv', 'provider', 'list', '--format', 'csv']);
  const before = server.seen.length;
  const writes = [
    ['provider', 'create', 'host-2'],
    ['provider', 'set', 'host-1', '--name', 'x'],
    ['provider', 'delete', 'host-1'],
    ['inventory', 'set', 'host-1', 'VCPU=9'],
    ['inventory', 'delete', 'host-1', '--all'],
    ['trait', 'set', 'host-1'],
    ['trait', 'create', 'CUSTOM_B'],
    ['trait', 'delete', 'CUSTOM_B'],
    ['aggregate', 'add', 'host-1', host],
    ['class', 'create', 'CUSTOM_B'],
    ['class', 'delete', 'CUSTOM_B'],
    ['allocation', 'set', 'ci/job-2', '-a', 'rp=host-1,VCPU=1'],
    ['allocation', 'place', 'VCPU=1', '--project', 'ci'],
    ['allocation', 'delete', 'ci/job-1'],
    ['allocation', 'delete', '--project', 'ci'],
    ['consumer', 'set', 'ci/job-1', '--project', 'x'],
    ['consumer', 'term', 'ci/job-1', '--lasting'],
    ['limit', 'set', 'ci', 'VCPU=1'],
    ['limit', 'set', '--default', 'VCPU=1'],
    ['limit', 'delete', 'ci'],
    ['waiting', 'delete', 'ci/job-1'],
    ['demo', '--hosts', '1'],
  ];
  for (const write of writes) await isWrongUsage(/(no column|a column) size/, [...write, '-c', 'size']);
  assert.equal(server.seen.length, before, 'nothing was asked');
});

test('names in CSV and values cannot send commands to the terminal', async () => {
  await run('provider', 'create', '\u001b[31mred');
  for (const format of ['csv', 'value']) {
    const { code, stdout } = await placement(['provider', 'list', '--format', format], env());
    assert.equal(code, 0);
    assert.ok(stdout.includes('\\u{1b}[31mred') && !stdout.includes('\u001b'));
  }
});

test('an output that nobody reads is no failure, and one that cannot be written is one', async () => {
  const listInto = async (output: string) => {
    const line = `set -o pipefail; '${process.execPath}' '${program}' provider list --json ${output}`;
    const child = spawn('bash', ['--norc', '-c', line], { env: { PATH: process.env.PATH, ...quickStart, ...env() } });
    const [stderr, [code]] = await Promise.all([text(child.stderr), once(child, 'exit')]);
    return [code, stderr];
  };
  assert.deepEqual(await listInto('| true'), [0, '']);
  // A disk that is full, as Linux has it for tests.
  if (process.platform !== 'linux') return;
  const full = 'placement: The output cannot be written: ENOSPC: no space left on device, write\n';
  assert.deepEqual(await listInto('> /dev/full'), [1, full]);
});

test('columns are as wide as a terminal shows their texts', () => {
  // `cells` measures tables by this function, so that it would not see where it is wrong.
  for (const [text, width] of [
    ['host-1', 6],
    ['cafe\u0301', 4],
    ['日本', 4],
    ['한글', 4],
    ['Ａ１', 4],
    ['ｶﾞﾀｶﾅ', 5],
    ['👍', 2],
  ] as const) {
    assert.equal(widthOf(text), width, text);
  }
});
