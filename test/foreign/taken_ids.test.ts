/**
 * Sequences that give ids which rows have already: they have come round, or another program has inserted rows with ids.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { accepted, at } from '../support/requests.ts';
import { claimOf, host, numbered, withDeployment, writeAll } from './deployment.ts';

const beginAgain = (table: string) => `select setval(pg_get_serial_sequence('${table}', 'id'), 1, false)`;

test('a taken id is drawn again in every table, whatever its constraints are called', async () => {
  await withDeployment(async (deployment) => {
    const { execute } = deployment;
    await execute(...numbered.map((table) => `alter table ${table} rename constraint ${table}_pkey to first_${table}`));
    await execute(...numbered.map(beginAgain));
    await writeAll(deployment);
  });
});

for (const table of ['allocations', 'consumers']) {
  test(`simultaneous claims are written although the ids of ${table} wrap around`, async () => {
    await withDeployment(async ({ send, succeed, execute }) => {
      const stocked = { resource_provider_generation: 2, inventories: { VCPU: { total: 10_000 } } };
      await succeed('PUT', `/resource_providers/${host}/inventories`, stocked);
      const claimMany = () =>
        Promise.all(Array.from({ length: 70 }, () => send('PUT', `/allocations/${randomUUID()}`, claimOf(1))));
      for (const answer of await claimMany()) accepted(answer);
      // Single ids are free among the taken ones, but few follow each other.
      await execute(`delete from ${table} where id % 5 = 0 and id > 10`, beginAgain(table));
      for (const answer of await claimMany()) accepted(answer);
    }, 'postgresql');
  });
}

test('a claim that gets no free id is refused in the end, and not as a conflict', async () => {
  await withDeployment(async ({ send, succeed, execute }) => {
    await execute(
      `create function same_id() returns trigger language plpgsql as
        'begin new.id := (select min(id) from allocations); return new; end'`,
      'create trigger same_id before insert on allocations for each row execute function same_id()',
    );
    const { status, text } = await send('PUT', `/allocations/${randomUUID()}`, claimOf(1));
    assert.equal(status, 503, text);
    assert.match(text, /no id left for a new row: the ids of table allocations are taken/);
    await execute('drop trigger same_id on allocations');
    await succeed('PUT', `/allocations/${randomUUID()}`, claimOf(1));
  }, 'postgresql');
});

test('simultaneously created providers get free ids, and a taken name is still a conflict', async () => {
  await withDeployment(async ({ send, execute }) => {
    const make = (name: string) => send('POST', '/resource_providers', { name });
    await execute(
      `insert into resource_providers (uuid, name, generation)
        select gen_random_uuid(), 'old ' || n, 0 from generate_series(1, 3000) as n`,
      beginAgain('resource_providers'),
    );
    const names = Array.from({ length: 30 }, (_, index) => `next node ${index}`);
    for (const answer of await Promise.all(names.map(make))) accepted(answer);
    const taken = await make('next node 1');
    assert.deepEqual([taken.status, at(taken.json, 'errors', 0, 'code')], [409, 'placement.duplicate_name']);
  }, 'postgresql');
});
