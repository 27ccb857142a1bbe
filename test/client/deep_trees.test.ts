import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { listen } from '../../src/http/server/listen.ts';
import { anyEngine } from '../support/engines.ts';
import { withTestService } from '../support/services.ts';
import { placement } from './command.ts';

const depth = 20_000;

test('"provider tree" draws a tree that is deeper than the stack, and writes it as JSON', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    await sql`insert into resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id)
      select n, lpad(n::text, 8, '0') || '-0000-4000-8000-000000000000', 'provider ' || n, 0, 1, nullif(n - 1, 0)
      from generate_series(1, ${depth}::integer) as n`.execute(service.database.unlimited);
    const { url, close } = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
    try {
      const run = async (...more: readonly string[]) => {
        const ended = await placement(['provider', 'tree', ...more], { OS_ENDPOINT: url, OS_TOKEN: 'admin' });
        assert.deepEqual([ended.code, ended.stderr], [0, '']);
        return ended.stdout;
      };
      const lines = (await run()).split('\n').filter((line) => / provider \d/.test(line));
      assert.equal(lines.length, depth);
      assert.match(lines[1] ?? '', /^\| └─ provider 2 /);
      assert.match(lines[2] ?? '', /^\| {4}└─ provider 3 /);
      assert.match(lines.at(-1) ?? '', /^\| {190,}└─ \(level 19999\) provider 20000 +\| 00020000-/);

      type Node = { readonly name: string; readonly children: readonly Node[] };
      const trees = JSON.parse(await run('--json')) as readonly Node[]; // what "provider tree" writes
      let count = 0;
      for (let level = trees; level.length > 0; level = level[0]?.children ?? []) {
        count += 1;
        assert.deepEqual([level.length, level[0]?.name], [1, `provider ${count}`]);
      }
      assert.equal(count, depth);
    } finally {
      await close();
    }
  });
});
