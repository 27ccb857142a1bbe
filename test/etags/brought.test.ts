/**
 * The tag in a write is stored as it is: no trigger computes it again. The tests use tags that match
 * no content, to see this.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import type { ProviderWrite } from '../../db/statements/providers/provider_write.ts';
import { isWritten } from '../races/two_connections.ts';
import { anyEngine, withFreshDatabase } from '../support/engines.ts';

type Stored = Readonly<Record<'provider' | 'inventories' | 'inventory' | 'traits' | 'aggregates', string | null>>;

async function stored({ kysely }: Database, uuid: string): Promise<Stored | undefined> {
  const { rows } = await sql<Stored>`
    select e.provider, e.inventories, e.traits, e.aggregates,
      (select string_agg(etag, ' ' order by resource_class_id) from inventories where resource_provider_id = p.id) as inventory
    from resource_providers p join resource_provider_etags e on e.resource_provider_id = p.id
    where p.uuid = ${uuid}`.execute(kysely);
  return rows[0];
}

const inventory = (classId: number, className: string, tag: string) => ({
  classId,
  className,
  tag,
  total: 10,
  reserved: 0,
  minUnit: 1,
  maxUnit: 10,
  stepSize: 1,
  allocationRatio: 1,
});
const newTags = { provider: 'p', inventories: 'i', traits: 't', aggregates: 'a' };

test('tags that come with a write are stored as they are', async () => {
  await withFreshDatabase(anyEngine, async ({ settings }) => {
    const database = await openDatabase(settings);
    const write = async (change: ProviderWrite): Promise<void> => assert.ok(await isWritten(database, change));
    try {
      // The row of a provider that no longer exists. It must not disturb the next one.
      await sql`insert into resource_provider_etags (resource_provider_id, provider)
        select id, 'old' from generate_series(1, 10) as id`.execute(database.kysely);
      await write({ kind: 'root', uuid: 'rp', name: 'rp', tags: newTags });
      assert.deepEqual(await stored(database, 'rp'), { ...newTags, inventory: null });
      const { id } = await database.kysely.selectFrom('resource_providers').select('id').executeTakeFirstOrThrow();
      await write({ kind: 'child', uuid: 'child', name: 'child', parent: { id, uuid: 'rp' }, tags: newTags });
      assert.deepEqual(await stored(database, 'child'), { ...newTags, inventory: null });

      const guard = (generation: number) => ({ providerId: id, uuid: 'rp', generation });
      const both = [inventory(0, 'VCPU', 'vcpu 1'), inventory(1, 'MEMORY_MB', 'memory')];
      await write({
        kind: 'inventories',
        ...guard(0),
        put: both,
        remove: [],
        present: [],
        tag: 'i1',
        tagBefore: 'i',
      });
      assert.deepEqual(await stored(database, 'rp'), { ...newTags, inventories: 'i1', inventory: 'vcpu 1 memory' });
      const vcpu = { ...inventory(0, 'VCPU', 'vcpu 2'), total: 11 };
      await write({
        kind: 'inventories',
        ...guard(1),
        put: [vcpu],
        remove: [1],
        present: [],
        tag: 'i2',
        tagBefore: 'i1',
      });
      assert.deepEqual(await stored(database, 'rp'), { ...newTags, inventories: 'i2', inventory: 'vcpu 2' });
      await write({
        kind: 'inventories',
        ...guard(2),
        put: [],
        remove: [0],
        present: [],
        tag: 'i3',
        tagBefore: 'i2',
      });

      const traits = await database.kysely.selectFrom('traits').select(['id', 'name']).limit(2).execute();
      for (const [index, tag] of ['t1', 't2', 't3'].entries()) {
        const tagBefore = index === 0 ? 't' : `t${index}`;
        await write({
          kind: 'traits',
          ...guard(3 + index),
          traits: traits.slice(index),
          present: index === 0 ? [] : traits.slice(index - 1),
          tag,
          tagBefore,
        });
        assert.equal((await stored(database, 'rp'))?.traits, tag);
      }
      await write({
        kind: 'aggregates',
        ...guard(6),
        uuids: ['one', 'other'],
        present: [],
        tag: 'a1',
        tagBefore: 'a',
      });
      assert.equal((await stored(database, 'rp'))?.aggregates, 'a1');
      await write({ kind: 'last aggregates', providerId: id, uuid: 'rp', uuids: [], tag: 'a2', tagBefore: 'a1' });
      const last = { provider: 'p', inventories: 'i3', inventory: null, traits: 't3', aggregates: 'a2' };
      assert.deepEqual(await stored(database, 'rp'), last);

      // A tag that came with this transaction has no effect on the next transaction.
      await sql`insert into resource_provider_traits (resource_provider_id, trait_id)
        select ${id}, id from traits limit 1`.execute(database.kysely);
      assert.match((await stored(database, 'rp'))?.traits ?? '', /^W\/"/);
    } finally {
      await database.close();
    }
  });
});
