/** One statement does all writes of a kind in a batch. A write that is refused does not stop the others. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { type ProviderWrite, writeProviders } from '../../db/statements/providers/provider_write.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';

const tags = { provider: 'p', inventories: 'i', traits: 't', aggregates: 'a' };
const root = (name: string, uuid = name): ProviderWrite => ({ kind: 'root', uuid, name, tags });
const child = (name: string, parent: { readonly id: number; readonly uuid: string }): ProviderWrite => ({
  kind: 'child',
  uuid: name,
  name,
  parent,
  tags,
});
const guard = (providerId: number, generation = 0) => ({
  providerId,
  uuid: `rp${providerId}`,
  generation,
  tag: 'new',
  tagBefore: 'old',
});
const judgedOn = { pgSnapshot: '1000000:1000000:', lastXid: '999999', serverRun: 'another run' };

for (const engine of engines) {
  const withRoots = (use: (database: Database) => Promise<void>) =>
    withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        await sql`insert into resource_providers (id, uuid, name, generation, root_provider_id)
          select id, 'rp' || id, 'rp' || id, 0, id from generate_series(1, 4) as id`.execute(database.kysely);
        await sql`select setval(pg_get_serial_sequence('resource_providers', 'id'), 100)`.execute(database.kysely);
        await sql`insert into resource_providers (id, uuid, name, generation, parent_provider_id, root_provider_id)
          values (5, 'rp5', 'rp5', 0, 4, null)`.execute(database.kysely);
        await use(database);
      } finally {
        await database.close();
      }
    });
  /** Does the writes at once. @returns the indexes of the writes that were done */
  const done = async (database: Database, writes: readonly ProviderWrite[]): Promise<readonly number[]> => {
    const written = await writeProviders(database, writes);
    return writes.flatMap((write, index) => (written.has(write) ? [index] : []));
  };
  const rowsOf = async <Row>(database: Database, query: string): Promise<readonly Row[]> =>
    (await sql.raw<Row>(query).execute(database.kysely)).rows;

  test(`a new provider whose name or UUID is taken, or whose parent is missing, stops no other new provider, on ${engine}`, async () => {
    await withRoots(async (database) => {
      const writes = [
        root('one'),
        root('rp2', 'another UUID'),
        root('another name', 'rp2'),
        root('one', 'the UUID of a second one'),
        child('below', { id: 1, uuid: 'rp1' }),
        child('below two', { id: 5, uuid: 'rp5' }),
        child('orphan', { id: 99, uuid: 'gone' }),
        child('rp3', { id: 2, uuid: 'rp2' }),
        root('last'),
      ];
      assert.deepEqual(await done(database, writes), [0, 4, 5, 8]);
      const made = `select p.name, parent.name as parent, root.name as root, e.traits from resource_providers p
        left join resource_providers parent on parent.id = p.parent_provider_id join resource_providers root on root.id = p.root_provider_id
        join resource_provider_etags e on e.resource_provider_id = p.id where p.id > 100 order by p.name`;
      assert.deepEqual(await rowsOf(database, made), [
        { name: 'below', parent: 'rp1', root: 'rp1', traits: 't' },
        // Its parent has no root yet, as one that an old release has written: it is the one above.
        { name: 'below two', parent: 'rp5', root: 'rp4', traits: 't' },
        { name: 'last', parent: null, root: 'last', traits: 't' },
        { name: 'one', parent: null, root: 'one', traits: 't' },
      ]);
    });
  });

  test(`of writes of a part each has its own guard and rows, on ${engine}`, async () => {
    await withRoots(async (database) => {
      const inventory = (classId: number, className: string, total: number) => {
        const values = { reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
        return { classId, className, total, tag: `${total}`, ...values };
      };
      const [vcpu, memory] = [inventory(0, 'VCPU', 8), inventory(1, 'MEMORY_MB', 64)];
      const put = { kind: 'inventories', remove: [], present: [] } as const;
      const inventories: ProviderWrite[] = [
        { ...put, ...guard(1), put: [vcpu, memory] },
        { ...put, ...guard(2, 7), put: [vcpu] },
        { ...put, ...guard(3), put: [{ ...vcpu, className: 'RENAMED' }] },
        { ...put, ...guard(4), put: [memory] },
        { ...put, ...guard(5), put: [vcpu], judgedOn },
      ];
      assert.deepEqual(await done(database, inventories), [0, 3]);
      const again: ProviderWrite[] = [
        { ...put, ...guard(1, 1), put: [inventory(0, 'VCPU', 9)], remove: [1] },
        { ...put, ...guard(4, 1), put: [], remove: [0], present: [{ id: 1, name: 'MEMORY_MB' }] },
      ];
      assert.deepEqual(await done(database, again), [0, 1]);
      const totals = `select resource_provider_id as provider, resource_class_id as class, total, etag from inventories order by 1, 2`;
      assert.deepEqual(await rowsOf(database, totals), [
        { provider: 1, class: 0, total: 9, etag: '9' },
        { provider: 4, class: 1, total: 64, etag: '64' },
      ]);

      const [first, second] = await rowsOf<{ id: number; name: string }>(
        database,
        'select id, name from traits order by id limit 2',
      );
      assert.ok(first !== undefined && second !== undefined);
      const traits: ProviderWrite[] = [
        { kind: 'traits', ...guard(1, 2), traits: [first, second], present: [] },
        { kind: 'traits', ...guard(2), traits: [first], present: [] },
        { kind: 'traits', ...guard(3), traits: [second, { id: first.id, name: 'RENAMED' }], present: [] },
        { kind: 'traits', ...guard(5), traits: [], present: [] },
        { kind: 'traits', ...guard(4, 2), traits: [], present: [{ id: first.id, name: 'RENAMED' }] },
      ];
      assert.deepEqual(await done(database, traits), [0, 1, 3]);
      assert.deepEqual(
        await done(database, [
          { kind: 'traits', ...guard(1, 3), traits: [second], present: [first, second] },
          { kind: 'traits', ...guard(2, 1), traits: [], present: [first] },
        ]),
        [0, 1],
      );
      const worn = 'select resource_provider_id as provider, trait_id as trait from resource_provider_traits';
      assert.deepEqual(await rowsOf(database, worn), [{ provider: 1, trait: second.id }]);

      const aggregates: ProviderWrite[] = [
        { kind: 'aggregates', ...guard(1, 4), uuids: ['x', 'y'], present: [] },
        { kind: 'aggregates', ...guard(2, 2), uuids: ['y'], present: [] },
        { kind: 'aggregates', ...guard(3), uuids: ['x'], present: [], uuid: 'another' },
        { kind: 'last aggregates', ...guard(4, 9), uuids: ['z', 'x'] },
        { kind: 'last aggregates', ...guard(99), uuids: ['z'] },
        { kind: 'last aggregates', ...guard(5), uuids: ['z'], uuid: 'another' },
      ];
      assert.deepEqual(await done(database, aggregates), [0, 1, 3]);
      assert.deepEqual(
        await done(database, [
          { kind: 'aggregates', ...guard(1, 5), uuids: ['z'], present: ['x', 'y'] },
          { kind: 'aggregates', ...guard(2, 3), uuids: ['x'], present: ['y'] },
        ]),
        [0, 1],
      );
      const members = `select m.resource_provider_id as provider, a.uuid as aggregate from resource_provider_aggregates m
        join placement_aggregates a on a.id = m.aggregate_id order by 1, 2`;
      assert.deepEqual(await rowsOf(database, members), [
        { provider: 1, aggregate: 'z' },
        { provider: 2, aggregate: 'x' },
        { provider: 4, aggregate: 'x' },
        { provider: 4, aggregate: 'z' },
      ]);
      const generations = 'select array_agg(generation order by id) as all from resource_providers where id < 100';
      assert.deepEqual(await rowsOf(database, generations), [{ all: [6, 4, 0, 2, 1] }]);
    });
  });
}
