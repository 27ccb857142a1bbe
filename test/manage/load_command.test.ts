import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { loadFile } from '../../src/manage/load/load_file.ts';
import { engines } from '../support/engines.ts';
import { at, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { withCommands } from './commands.ts';

const [host, numa, disk, device] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
const aggregate = randomUUID();
const providers = [
  {
    uuid: host.toUpperCase(),
    name: 'host "1"',
    inventories: { VCPU: { total: 8, allocation_ratio: 1.5 }, MEMORY_MB: { total: 4096, reserved: 512, step_size: 4 } },
    traits: ['HW_CPU_X86_AVX2', 'COMPUTE_NODE', 'HW_CPU_X86_AVX2'],
    aggregates: [aggregate],
  },
  {
    uuid: numa,
    name: 'numa',
    parent_provider_uuid: host,
    inventories: { VGPU: { total: 1 } },
    aggregates: [aggregate],
  },
  { uuid: disk, name: 'disk', parent_provider_uuid: null },
  { uuid: device, name: 'device', parent_provider_uuid: numa, traits: ['HW_NUMA_ROOT'] },
];
const linesOf = (items: readonly unknown[]): string => items.map((item) => `${JSON.stringify(item)}\n`).join('');

/** The number of providers, and that of rows with other tags than the functions of migration 004 compute. */
const countRows = ({ kysely }: Database) =>
  onlyRow(
    kysely,
    sql<{ providers: number; wrong: number }>`select count(*)::integer as providers,
      count(*) filter (where array[e.provider, e.inventories, e.traits, e.aggregates]::text[] is distinct from
          array[etag_of_provider(p), etag_of_inventories(p.id), etag_of_traits(p.id), etag_of_aggregates(p.id)])::integer
        + (select count(*)::integer from inventories i where etag is distinct from etag_of(etag_inventory(i))) as wrong
      from resource_providers p left join resource_provider_etags e on e.resource_provider_id = p.id`,
  );

const silent = { checked: () => {}, loaded: () => {} };

for (const engine of engines) {
  test(`a file of providers is loaded with all their parts and tags, and repeating it changes nothing, on ${engine}`, async () => {
    await withCommands(engine, 'migrated', async ({ run, folder, config, withDatabase }) => {
      const file = path.join(folder, 'providers.jsonl');
      const open = () => openServiceOn({ settings: { connection: '', maxPoolSize: 1 }, config, drop: async () => {} });
      // A service on the embedded database cannot be open at the same time.
      const early = engine === 'postgresql' ? await open() : undefined;
      await writeFile(file, linesOf(providers.slice(0, 3)).replaceAll('\n', '\r\n'));
      const load = () => run('placement-manage', 'load', file);
      const first = await load();
      assert.match(first.stdout, /All 3 lines are right.*Loaded 3 resource providers in [\d.]+ s\.\n$/s, first.stderr);
      await writeFile(file, `\n${linesOf(providers)}`);
      assert.match(
        (await load()).stdout,
        /Loaded 1 resource providers in [\d.]+ s; 3 of the file were there already\.\n$/,
      );
      assert.match((await load()).stdout, /Loaded 0 resource providers/);
      assert.deepEqual(await withDatabase(countRows), { providers: 4, wrong: 0 });

      const service = early ?? (await open());
      try {
        const send = requestsTo(service, 'placement 2.6');
        const get = async (uuid: string, part = '') => (await send('GET', `/resource_providers/${uuid}${part}`)).json;
        const child = await get(device);
        assert.deepEqual([at(child, 'root_provider_uuid'), at(child, 'parent_provider_uuid')], [host, numa]);
        assert.equal(at(await get(host), 'name'), 'host "1"');
        const stock = at(await get(host, '/inventories'), 'inventories');
        assert.deepEqual([at(stock, 'VCPU', 'allocation_ratio'), at(stock, 'VCPU', 'max_unit')], [1.5, 2147483647]);
        assert.deepEqual([at(stock, 'MEMORY_MB', 'reserved'), at(stock, 'MEMORY_MB', 'step_size')], [512, 4]);
        assert.deepEqual(at(await get(host, '/traits'), 'traits'), ['COMPUTE_NODE', 'HW_CPU_X86_AVX2']);
        assert.deepEqual(at(await get(numa, '/aggregates'), 'aggregates'), [aggregate]);
        const found = await send('GET', `/allocation_candidates?resources=VCPU:8&required=HW_CPU_X86_AVX2`);
        assert.ok(at(found.json, 'allocation_requests', 0) !== undefined);
      } finally {
        await service.close();
      }
    });
  });

  test(`the standard names exist in a load right after db sync, before any process has served, on ${engine}`, async () => {
    await withCommands(engine, 'empty', async ({ run, folder }) => {
      const file = path.join(folder, 'providers.jsonl');
      await writeFile(file, linesOf(providers));
      assert.equal((await run('placement-manage', 'db', 'sync')).code, 0);
      const { code, stdout, stderr } = await run('placement-manage', 'load', file);
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /Loaded 4 resource providers/);
    });
  });

  test(`a load that was interrupted continues, on ${engine}`, async () => {
    await withCommands(engine, 'migrated', async ({ folder, withDatabase }) => {
      const file = path.join(folder, 'providers.jsonl');
      await writeFile(file, linesOf(providers));
      await withDatabase(async (database) => {
        const interrupting = {
          ...silent,
          loaded: () => {
            throw new Error('interrupted');
          },
        };
        await assert.rejects(loadFile(file, database, interrupting, 1), /interrupted/);
        assert.equal((await countRows(database)).providers, 1);
        assert.deepEqual(await loadFile(file, database, silent, 1), { found: 4, written: 3 });
        assert.deepEqual(await countRows(database), { providers: 4, wrong: 0 });
      });
    });
  });

  test(`nothing is loaded if a line is wrong, and each problem is reported, on ${engine}`, async () => {
    await withCommands(engine, 'migrated', async ({ run, folder, withDatabase }) => {
      const file = path.join(folder, 'providers.jsonl');
      const [first, second, third] = providers;
      await writeFile(file, linesOf([third]));
      assert.equal((await run('placement-manage', 'load', file)).code, 0);
      const other = randomUUID();
      const wrong: readonly (readonly [line: unknown, problem: RegExp])[] = [
        ['text', /it is not|is not of type 'object'/],
        [{ uuid: other }, /'name' is a required property/],
        [{ uuid: 'x', name: 'x' }, /uuid: 'x' is not a 'uuid'/],
        [{ uuid: other, name: 'x', parent: host }, /'parent' is unknown\./],
        [
          { uuid: other, name: 'a', inventories: { VCPU: { total: 0 } } },
          /inventories\.VCPU\.total: 0 is less than the minimum of 1/,
        ],
        [
          { uuid: randomUUID(), name: 'b', inventories: { VCPU: { total: 1, reserved: 2 } } },
          /inventories\.VCPU\.reserved: 2 is more than the total of 1/,
        ],
        [
          { uuid: randomUUID(), name: 'c', inventories: { CUSTOM_X: { total: 1 } } },
          /inventories: there is no resource class CUSTOM_X/,
        ],
        [{ uuid: randomUUID(), name: 'd', traits: ['CUSTOM_Y'] }, /traits: there is no trait CUSTOM_Y/],
        [
          { uuid: randomUUID(), name: 'i', aggregates: [`urn:uuid:${other}`] },
          /aggregates\.0: 'urn:uuid:.*' is too long/,
        ],
        [
          { uuid: randomUUID(), name: 'e', parent_provider_uuid: other },
          new RegExp(`parent_provider_uuid: ${other} is neither`),
        ],
        [{ uuid: numa, name: 'f', parent_provider_uuid: numa }, /parent_provider_uuid: .* is the provider itself/],
        [{ uuid: host, name: 'g' }, new RegExp(`uuid: ${host} is also in line 1`)],
        [{ uuid: randomUUID(), name: first?.name }, /name: "host \\"1\\"" is also in line 1/],
        [{ ...third, name: 'other' }, new RegExp(`uuid: ${disk} is that of a provider which exists`)],
        [{ uuid: randomUUID(), name: 'disk' }, new RegExp(`name: "disk" is that of provider ${disk}`)],
        [
          { ...second, uuid: device, name: 'h', parent_provider_uuid: '00000000-0000-4000-8000-000000000001' },
          /parent_provider_uuid/,
        ],
        [{ uuid: '00000000-0000-4000-8000-000000000001', name: 'late' }, /^$/],
      ];
      const repeated = `{"uuid": "${randomUUID()}", "name": "j", "name": "k"}\n`;
      await writeFile(file, linesOf([first, ...wrong.map(([line]) => line)]) + repeated);
      const { code, stderr } = await run('placement-manage', 'load', file);
      assert.equal(code, 1);
      assert.match(stderr, /^placement-manage: 17 lines are wrong\. Nothing is loaded\.\n/);
      const problems = new Map(
        Array.from(stderr.matchAll(/^line (\d+): (.*)$/gm), ([, line, text]) => [Number(line), text ?? '']),
      );
      for (const [index, [, problem]] of wrong.entries())
        assert.match(problems.get(index + 2) ?? '', problem, `${index + 2}`);
      assert.equal(problems.get(wrong.length + 2), '"name" stands twice in the same object.');
      assert.equal((await withDatabase(countRows)).providers, 1);
    });
  });
}

test('lines are UTF-8, maybe behind a byte order mark, and only a line feed ends one', async () => {
  await withCommands('embedded', 'migrated', async ({ run, folder }) => {
    const file = path.join(folder, 'providers.jsonl');
    const right = Buffer.from(`${JSON.stringify({ uuid: randomUUID(), name: 'one\u2028host' })}\n`);
    const inLatin1 = Buffer.from(`${JSON.stringify({ uuid: randomUUID(), name: 'h\u00f4te' })}\n`, 'latin1');
    await writeFile(file, Buffer.concat([right, inLatin1]));
    assert.match((await run('placement-manage', 'load', file)).stderr, /\nline 2: it is not valid UTF-8\n/);
    await writeFile(file, `\ufeff${right}`);
    assert.match((await run('placement-manage', 'load', file)).stdout, /Loaded 1 resource providers/);
  });
});

test('a file that is not there, one that cannot be read twice, and too long a line are refused by name', async () => {
  await withCommands('embedded', 'migrated', async ({ run, folder }) => {
    const missing = await run('placement-manage', 'load', path.join(folder, 'none'));
    assert.match(missing.stderr, /ENOENT.*none/);
    assert.equal(missing.code, 1);
    assert.match((await run('placement-manage', 'load', '/dev/null')).stderr, /\/dev\/null is no file/);
    const file = path.join(folder, 'long.jsonl');
    await writeFile(file, `\n${linesOf(providers.slice(0, 1))}${' '.repeat(2 ** 21)}`);
    const long = await run('placement-manage', 'load', file);
    assert.deepEqual([long.code, long.stderr], [1, 'placement-manage: Line 3 has more than 1048576 bytes.\n']);
  });
});
