import assert from 'node:assert/strict';
import { afterEach, beforeEach, test } from 'node:test';
import { exitCodes } from '../../src/cli/exit_codes.ts';
import { connect } from '../../src/client/index.ts';
import { harmful, hasHarmful } from '../support/harmful_characters.ts';
import { newestVersion } from '../support/requests.ts';
import { cells, commandsOn, hostedPlacement, placement } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
beforeEach(async () => {
  server = await startServer();
});
afterEach(() => server.close());

const { env, run, fails, isWrongUsage } = commandsOn(() => server);

const instance = 'b1d0c1a4-52a1-4a5e-8f0c-000000000001';
const aggregate = 'a66e0000-0000-4000-8000-000000000001';

/** Makes what the session below makes, and a consumer of it: by the client, which takes less time than a command for each. */
async function fill(): Promise<void> {
  const { providers, inventories, traits, providerTraits, aggregates, allocations } = connect({
    endpoint: server.url,
    auth: 'admin',
    version: '1.39',
  });
  const make = async (name: string, amounts: Parameters<typeof inventories.set>[1]['inventories'], parent?: string) => {
    const { uuid } = await providers.create({
      name,
      ...(parent === undefined ? {} : { parent_provider_uuid: parent }),
    });
    await inventories.set(uuid, { inventories: amounts, resource_provider_generation: 0 });
    return uuid;
  };
  const host = await make('host-1', { DISK_GB: { total: 1000 } });
  const cell = await make(
    'numa-0',
    { VCPU: { total: 8, allocation_ratio: 4 }, MEMORY_MB: { total: 16384, reserved: 512 } },
    host,
  );
  const fast = await make('numa-1', { VCPU: { total: 8 } }, host);
  await traits.ensure('CUSTOM_FAST');
  await providerTraits.set(fast, { traits: ['CUSTOM_FAST', 'HW_CPU_X86_VMX'], resource_provider_generation: 1 });
  await aggregates.set(host, { aggregates: [aggregate], resource_provider_generation: 1 });
  await allocations.set(instance, {
    allocations: {
      [cell]: { resources: { VCPU: 2, MEMORY_MB: 2048 } },
      [host]: { resources: { DISK_GB: 10 } },
    },
    project_id: 'web',
    user_id: 'ada',
    consumer_type: 'INSTANCE',
    consumer_generation: null,
  });
}

test('a user fills a service with data, lists candidates, claims one of them and sees its usage', async () => {
  await run('provider', 'create', 'host-1');
  for (const cell of ['numa-0', 'numa-1']) await run('provider', 'create', cell, '--parent', 'host-1');
  await run('inventory', 'set', 'host-1', 'DISK_GB=1000');
  const set = ['VCPU=8', 'VCPU:allocation_ratio=4', 'MEMORY_MB=16384', 'MEMORY_MB:reserved=512'];
  assert.deepEqual(cells(await run('inventory', 'set', 'numa-0', ...set)), [
    ['VCPU', '8', '0', '1', '2147483647', '1', '4', '32', '0'],
    ['MEMORY_MB', '16384', '512', '1', '2147483647', '1', '1', '15872', '0'],
  ]);
  await run('inventory', 'set', 'numa-1', 'VCPU=8');
  await run('trait', 'create', 'CUSTOM_FAST');
  assert.deepEqual(cells(await run('trait', 'add', 'numa-1', 'CUSTOM_FAST', 'HW_CPU_X86_VMX')), [
    ['HW_CPU_X86_VMX'],
    ['CUSTOM_FAST'],
  ]);
  await run('aggregate', 'add', 'host-1', aggregate);
  const tree = await run('provider', 'tree', 'numa-1', '--usage');
  assert.deepEqual(
    cells(tree).map(([name, , usage]) => [name, usage]),
    [
      ['host-1', 'DISK_GB 0/1000'],
      ['├─ numa-0', 'VCPU 0/32, MEMORY_MB 0/15872'],
      ['└─ numa-1', 'VCPU 0/8'],
    ],
  );

  const list = ['candidate', 'list', 'VCPU=2', 'DISK_GB=10'];
  const candidates = cells(await run(...list));
  assert.deepEqual(
    candidates.filter(([number]) => number !== '').map(([number]) => number),
    ['1', '2'],
  );
  const fast = await run(...list, '--required', 'CUSTOM_FAST');
  assert.ok(fast.includes('numa-1') && !fast.includes('numa-0'));
  const groups = ['-g', '_A', '-r', 'VCPU=1', '--required', '!CUSTOM_FAST', '-g', '_B', '-r', 'VCPU=1'];
  const granular = JSON.parse(await run('candidate', 'list', ...groups, '--group-policy', 'isolate', '--json'));
  assert.equal(granular.allocation_requests.length, 1);
  assert.match(
    await run('candidate', 'list', 'VCPU=9999'),
    /^It fits nowhere\.\nIt fits 0 of 1 trees[\s\S]*resources=VCPU:9999/,
  );
  const older = ['--os-placement-api-version', '2.2'];
  assert.equal((await run('candidate', 'list', 'VCPU=9999', ...older)).trim(), 'It fits nowhere.');
  const why = await run('candidate', 'why', 'VCPU=40', 'DISK_GB=10', '--host', 'numa-1');
  assert.match(why, /\| resources=VCPU:40 {4}\| +0 \| +0 \| +1 \| +32 \|/);
  assert.match(why, /host-1 +\| resources=VCPU:40 \| numa-0 has 32 left/);
  assert.match(await run('candidate', 'count', 'VCPU=2', 'DISK_GB=100'), /^10 fit\.[\s\S]*host-1 .* 10 \|/);
  assert.equal((await run('candidate', 'count', 'VCPU=2', '--max', '3', '--top', '0')).trim(), 'At least 3 fit.');
  await isWrongUsage(/Nothing is asked for/, ['candidate', 'why']);
  assert.match(await run(...list, '--limit', '1'), /Give a larger --limit to see more\./);

  const claim = ['allocation', 'set', instance, '-a', 'rp=numa-0,VCPU=2,MEMORY_MB=2048', '-a', 'rp=host-1,DISK_GB=10'];
  await isWrongUsage(/is new\. Give the project that it is counted for, with --project/, claim);
  await run(...claim, '--project', 'web', '--user', 'ada');
  // A consumer that exists keeps its project, user and type.
  await run(...claim);
  const held = JSON.parse(await run('allocation', 'show', instance, '--json'));
  assert.deepEqual([held.project_id, held.user_id, held.consumer_type], ['web', 'ada', 'INSTANCE']);
  const [[...listed] = []] = cells(await run('allocation', 'list', 'numa-0'));
  assert.deepEqual(listed.slice(0, 6), [instance, '', 'web', 'ada', 'INSTANCE', 'VCPU=2 MEMORY_MB=2048']);
  assert.deepEqual(cells(await run('usage', 'show', 'numa-0')), [
    ['VCPU', '2', '32', '30'],
    ['MEMORY_MB', '2048', '15872', '13824'],
  ]);
  const used = cells(await run('usage', 'list', '--project', 'web'));
  assert.deepEqual(
    used.find(([, , name]) => name === 'VCPU'),
    ['INSTANCE', '1', 'VCPU', '2'],
  );
});

test('a refusal says what the user can do', async () => {
  await fill();
  await fails('conflict', /has child resource providers[\s\S]*"placement provider tree" shows them/, [
    'provider',
    'delete',
    'host-1',
  ]);
  await fails('conflict', /in use[\s\S]*"placement allocation list /, ['inventory', 'delete', 'numa-0', 'VCPU']);
  const much = ['allocation', 'set', instance, '-a', 'rp=numa-0,VCPU=33'];
  await fails('full', /exceed the capacity[\s\S]*"placement usage show PROVIDER" tells what is free/, much);
  await run('inventory', 'set', 'numa-0', 'MEMORY_MB:step_size=512');
  const odd = ['allocation', 'set', instance, '-a', 'rp=numa-0,MEMORY_MB=513'];
  await fails('wrongInput', /would violate inventory constraints[\s\S]*"placement inventory list PROVIDER" shows/, odd);
  const missing = ['allocation', 'set', instance, '-a', 'rp=numa-0,DISK_GB=1'];
  await fails(
    'wrongInput',
    /Inventory for 'DISK_GB' .* invalid[\s\S]*"placement inventory list PROVIDER" shows/,
    missing,
  );
  await fails('wrongInput', /There is no provider "nope".*"placement provider list"/, ['provider', 'show', 'nope']);
  await fails('wrongInput', /There is no trait CUSTOM_SLOW\. Create it first: placement trait create/, [
    'trait',
    'add',
    'host-1',
    'CUSTOM_SLOW',
  ]);
  await fails('wrongInput', /No such resource class CUSTOM_X[\s\S]*"placement class list"/, [
    'candidate',
    'list',
    'CUSTOM_X=1',
  ]);
  await isWrongUsage(/Write it as CLASS=AMOUNT, such as VCPU=2/, ['candidate', 'list', 'VCPU']);
  await isWrongUsage(/Nothing is asked for/, ['candidate', 'list']);
  await isWrongUsage(/Allowed choices are none, isolate/, ['candidate', 'list', 'VCPU=1', '--group-policy', 'all']);
  await isWrongUsage(/Nothing is to be changed\. Give --name/, ['provider', 'set', 'host-1']);
  await isWrongUsage(/Give the classes to delete, or --all/, ['inventory', 'delete', 'host-1']);
  await isWrongUsage(/Give the classes to delete, or --all/, ['inventory', 'delete', 'host-1', 'VCPU', '--all']);
  await isWrongUsage(/Usage: placement provider /, ['provider']);
  await isWrongUsage(/There is no field size\. Choose one of total/, ['inventory', 'set', 'host-1', 'VCPU:size=1']);
  await fails('wrongInput', /There is no inventory of VCPU yet: give its total too/, [
    'inventory',
    'set',
    'host-1',
    'VCPU:reserved=1',
  ]);
  await isWrongUsage(/'VCPU:allocation_ratio=0'.*allocation_ratio must be a number above 0, not "0"/, [
    'inventory',
    'set',
    'host-1',
    'VCPU:allocation_ratio=0',
  ]);
  await isWrongUsage(/total must be a whole number from 1 to 2147483647, not "1\.5"/, [
    'inventory',
    'set',
    'host-1',
    'VCPU=1.5',
  ]);
  await isWrongUsage(/Did you mean provider\?/, ['provder', 'list']);
  await fails('forbidden', /403 Forbidden[\s\S]*role admin/, ['provider', 'list'], { OS_TOKEN: 'joe' });
});

test('a consumer may be a UUID in any spelling', async () => {
  await fill();
  const claim = ['-a', 'rp=host-1,DISK_GB=1', '--project', 'web', '--user', 'ada'];
  const other = 'b1d0c1a4-52a1-4a5e-8f0c-000000000002';
  const spelled = other.replaceAll('-', '').toUpperCase();
  assert.ok((await run('allocation', 'set', spelled, ...claim)).includes('DISK_GB=1'));
  assert.ok((await run('allocation', 'show', spelled)).includes(other));
  await run('allocation', 'delete', spelled);
  assert.match(await run('allocation', 'show', other), /has nothing/);
});

test('the free amount is below zero if more is used than there is', async () => {
  await fill();
  await run('inventory', 'set', 'host-1', 'DISK_GB:max_unit=50');
  const { code, stdout } = await placement(['inventory', 'set', 'host-1', 'DISK_GB:reserved=1000'], env());
  assert.equal(code, 0);
  // Fields that the command does not name stay.
  assert.deepEqual(cells(stdout), [['DISK_GB', '1000', '1000', '1', '50', '1', '1', '0', '10']]);
  assert.deepEqual(cells(await run('usage', 'show', 'host-1')), [['DISK_GB', '10', '0', '-10']]);
});

test('if one of several names fails, the names that were done are printed', async () => {
  await fill();
  const names = ['CUSTOM_A', 'CUSTOM_B', 'CUSTOM_C'];
  const kinds = [
    ['class', /in use in inventory[\s\S]*\n"placement provider tree --usage" shows which providers have it/],
    ['trait', /in use by a resource provider[\s\S]*\n"placement provider list --required TRAIT" shows which have it/],
  ] as const;
  await run('class', 'create', ...names);
  await run('inventory', 'set', 'numa-1', 'CUSTOM_B=1');
  await run('trait', 'create', ...names);
  await run('trait', 'add', 'numa-1', 'CUSTOM_B');
  for (const [kind, says] of kinds) {
    const { code, stdout, stderr } = await placement([kind, 'delete', ...names], env());
    assert.deepEqual([code, stdout], [exitCodes.conflict.code, 'CUSTOM_A deleted.\n'], stderr);
    assert.match(stderr, says);
    assert.doesNotMatch(stderr, /allocation/);
    const created = await placement([kind, 'create', 'CUSTOM_A', 'NO_CUSTOM', '--json'], env());
    assert.deepEqual([created.code, created.stdout], [exitCodes.wrongInput.code, ''], 'a wrong name is found before');
    assert.deepEqual(JSON.parse(await run(kind, 'create', 'CUSTOM_A', '--json')), ['CUSTOM_A']);
  }
  await run('inventory', 'delete', 'numa-1', 'CUSTOM_B');
  await run('trait', 'remove', 'numa-1', 'CUSTOM_B');
  for (const [kind] of kinds) assert.equal(await run(kind, 'delete', ...names), `${names.join(', ')} deleted.\n`);
});

test('the version can be named, by option or environment', async () => {
  await fill();
  assert.ok(
    !(
      'parent_provider_uuid' in
      JSON.parse(await run('provider', 'list', '--json', '--os-placement-api-version', '1.10'))[0]
    ),
  );
  await isWrongUsage(/"spam" is no microversion/, ['provider', 'list'], { OS_PLACEMENT_API_VERSION: 'spam' });
  const old = ['provider', 'list', '--in-tree', 'host-1', '--os-placement-api-version', '1.10'];
  await fails('failed', /in_tree=.* needs microversion 1\.14.*The server speaks up to 1\.\d+/, old);
  // As osc-placement wants it. The error names what has chosen the version.
  const chosen =
    /GET \/holdings needs microversion 2\.9.*\nOS_PLACEMENT_API_VERSION \(or --os-placement-api-version\) is 1\.39: unset it/;
  await fails('failed', chosen, ['holdings', '--os-placement-api-version', '1.39']);
  assert.deepEqual(cells(await run('version'))[0], ['spoken', newestVersion]);
  assert.deepEqual(cells(await run('version', '--os-placement-api-version', '2.3'))[0], ['spoken', '2.3']);
  assert.deepEqual(cells(await run('version', '--version', '2.3'))[0], ['spoken', '2.3']);
  assert.match(await run('--version'), /^\d+\.\d+\.\d+\n$/);
  assert.deepEqual(cells(await run('version', '--os-placement-api-version', 'latest'))[0], ['spoken', '1.39']);
});

test('names cannot send commands to the terminal, and wide characters do not break the table', async () => {
  await run('provider', 'create', '\u001b[31mred');
  await run('provider', 'create', '計算機');
  const text = await run('provider', 'list');
  assert.ok(!text.includes('\u001b'));
  const names = cells(text).map(([name]) => name);
  assert.ok(names.includes('\\u{1b}[31mred') && names.includes('計算機'));
});

test('names have no effect on the terminal in tables, in JSON, in errors and in wrong usage', async () => {
  const { providers } = connect({ endpoint: server.url, auth: 'admin' });
  // NUL cannot be in a name, nor in an argument.
  const inNames = harmful.filter((character) => character !== '\0');
  for (const character of inNames) await providers.create({ name: `a${character}b` });
  const wanted = inNames.map((character) => `a${character}b`).toSorted();
  assert.ok(!hasHarmful(await run('provider', 'list')));
  const json = await run('provider', 'list', '--json');
  assert.ok(!hasHarmful(json));
  const listed: readonly { readonly name: string }[] = JSON.parse(json);
  assert.deepEqual(listed.map(({ name }) => name).toSorted(), wanted);
  const unknown = `nobody${inNames.join('')}`;
  for (const args of [
    ['provider', 'show', unknown],
    ['provider', unknown],
    ['provider', 'list', `--${unknown}`],
    ['provider', 'list', '--in-tree', unknown],
    ['provider', 'list', '--os-placement-api-version', unknown],
    ['provider', 'create', `a${inNames[0]}b`],
    ['inventory', 'set', `a${inNames[0]}b`, unknown],
    ['allocation', 'show', unknown],
    ['trait', 'delete', unknown],
  ]) {
    const { code, stderr } = await hostedPlacement(args, env());
    assert.notEqual(code, 0, args.join(' '));
    assert.match(stderr, /\S/);
    assert.ok(!hasHarmful(stderr), JSON.stringify([args, stderr]));
  }
});

test('everything that a command makes can be deleted by a command', async () => {
  await fill();
  await run('allocation', 'delete', instance);
  await fails('wrongInput', /has no allocations\./, ['allocation', 'delete', instance]);
  assert.match(await run('inventory', 'delete', 'numa-0', '--all'), /has left: nothing/);
  assert.deepEqual(cells(await run('trait', 'remove', 'numa-1', 'CUSTOM_FAST')), [['HW_CPU_X86_VMX']]);
  await run('trait', 'delete', 'CUSTOM_FAST');
  // In any spelling of a UUID.
  const spelled = aggregate.toUpperCase();
  const [{ uuid }] = JSON.parse(await run('provider', 'list', '--name', 'host-1', '--json'));
  const added = await run('aggregate', 'add', uuid.replaceAll('-', '').toUpperCase(), spelled);
  assert.deepEqual(cells(added), [[aggregate]]);
  assert.deepEqual(cells(await run('aggregate', 'remove', 'host-1', spelled)), []);
  await run('aggregate', 'add', 'host-1', aggregate);
  assert.deepEqual(cells(await run('aggregate', 'set', 'host-1')), []);
  await run('provider', 'set', 'numa-1', '--no-parent', '--name', 'alone');
  assert.deepEqual(
    cells(await run('provider', 'tree')).map(([name]) => name),
    ['alone', 'host-1', '└─ numa-0'],
  );
  for (const name of ['alone', 'numa-0', 'host-1']) await run('provider', 'delete', name);
  assert.deepEqual(JSON.parse(await run('provider', 'list', '--json')), []);
});

test('the usages of all trees take one request, where the service has whole providers', async () => {
  await fill();
  const shown = async (...more: readonly string[]) => {
    server.seen.length = 0;
    const tree = await run('provider', 'tree', '--usage', ...more);
    const ofOne = server.seen.filter(({ url }) => /^\/resource_providers\/[^/]+\/(inventories|usages)/.test(url));
    return { tree, requests: ofOne.length };
  };
  const { tree, requests } = await shown();
  assert.match(tree, /host-1 .* DISK_GB 10\/1000 [\s\S]* VCPU 2\/32, MEMORY_MB 2048\/15872 /);
  assert.equal(requests, 0);
  assert.deepEqual(await shown('--os-placement-api-version', '1.39'), { tree, requests: 6 });
});

test('an inventory below what is used is written, and a warning says so', async () => {
  await fill();
  const { code, stdout, stderr } = await placement(
    ['inventory', 'set', 'numa-0', 'VCPU=1', 'VCPU:allocation_ratio=1'],
    env(),
  );
  assert.equal(code, 0);
  assert.deepEqual(cells(stdout)[0], ['VCPU', '1', '0', '1', '2147483647', '1', '1', '1', '2']);
  assert.equal(
    stderr,
    'Warning: more is used than there is now: VCPU (used 2, capacity 1). Consumers keep their allocations; no further claim of this class fits.\n',
  );
  await run('inventory', 'set', 'numa-0', 'VCPU=2');
});

test('candidate list cuts the list itself for a server that has no limit parameter', async () => {
  await fill();
  const old = ['--os-placement-api-version', '1.15'];
  const list = ['candidate', 'list', 'VCPU=1'];
  assert.equal(cells(await run(...list, ...old)).length, 2);
  const cut = await run(...list, ...old, '--limit', '1');
  assert.match(cut, /Give a larger --limit to see more\./);
  await fails('failed', /required=.* needs microversion 1\.17/, [...list, ...old, '--required', 'HW_CPU_X86_VMX']);
});

test('classes and traits are listed with their meaning', async () => {
  await run('class', 'create', 'CUSTOM_TAPE');
  const classes = cells(await run('class', 'list'));
  assert.deepEqual(
    classes.filter(([, meaning]) => meaning === ''),
    [],
  );
  const meaningOf = (name: string) => classes.find(([one]) => one === name)?.[1];
  assert.match(meaningOf('VGPU') ?? '', /parts of a physical one/);
  assert.match(meaningOf('PGPU') ?? '', /whole physical GPUs/);
  assert.match(meaningOf('CUSTOM_TAPE') ?? '', /defined here/);
  const traits = cells(await run('trait', 'list'));
  assert.deepEqual(
    traits.filter(([, meaning]) => meaning === ''),
    [],
    'each standard trait has a meaning',
  );
  assert.ok(traits.some(([name, meaning]) => name === 'HW_GPU_API_OPENGL_V4_5' && meaning === 'GPU: OPENGL 4.5'));
  assert.equal(JSON.parse(await run('class', 'list', '--json'))[0], 'VCPU');
});
