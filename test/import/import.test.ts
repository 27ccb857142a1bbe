/** A database of OpenStack Placement on MariaDB is copied, in this process; command.test.ts runs the command. */
import assert from 'node:assert/strict';
import { after, before, suite, test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { standardResourceClasses } from '../../db/schema/standard_resource_classes.ts';
import { isImportUnfinished, readUnfinishedImport } from '../../db/schema/unfinished_import.ts';
import { readLimits, writeLimits } from '../../db/statements/limits.ts';
import { type Imported, importDeployment } from '../../src/manage/import/import_deployment.ts';
import { openSource, type SourceDatabase } from '../../src/manage/import/source.ts';
import { exitCodeOf } from '../../src/start/exit_code.ts';
import { differences, switchOn, takeInAll } from '../history/world.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { at, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { type Cloud, type SourceServer, settingsOf, sourceServers } from './source_server.ts';

/**
 * Two rows a page, so that most tables have several pages. `breakAt`: after how many rows of which table the import
 * breaks.
 */
type ImportOptions = {
  readonly breakAt?: { readonly table: string; readonly rows: number };
  readonly name?: string;
  /** Something that is done when the target is empty, before the first table is copied. */
  readonly whenEmpty?: () => Promise<unknown>;
};

type Ended = {
  readonly imported: Imported | undefined;
  readonly error: string;
  readonly notes: readonly string[];
  readonly code: number;
};

/** Imports in this process. If it is to break, the connection to the source is lost after a page. */
async function run(cloud: Cloud, database: Database, { breakAt, name, whenEmpty }: ImportOptions = {}): Promise<Ended> {
  const notes: string[] = [];
  const opened = await openSource(settingsOf(cloud.url));
  let cut: Promise<void> | undefined;
  const source: SourceDatabase = {
    ...opened,
    ...(name === undefined ? {} : { name }),
    query: async (statement, values) => {
      await cut;
      if (statement.startsWith('select count(*) from traits t ')) await whenEmpty?.();
      return opened.query(statement, values);
    },
  };
  const report = {
    note: (line: string) => void notes.push(line),
    progress: (table: string, done: number, total: number) => {
      if (table === breakAt?.table && done >= breakAt.rows) cut ??= cloud.cut();
      if (table === 'allocations') notes.push(`${table}: ${done} of ${total}`);
    },
  };
  try {
    return { imported: await importDeployment(source, database, report, 2), error: '', notes, code: 0 };
  } catch (error) {
    return {
      imported: undefined,
      error: error instanceof Error ? error.message : String(error),
      notes,
      code: exitCodeOf(error),
    };
  } finally {
    opened.close();
  }
}

const readClasses = ({ kysely }: Database) => kysely.selectFrom('resource_classes').select(['id', 'name']).execute();

const rowsOf = async (database: Database, table: string, columns: string): Promise<readonly unknown[]> =>
  (await sql`select ${sql.raw(columns)} from ${sql.table(table)} order by 1, 2`.execute(database.kysely)).rows.map(
    (row) => Object.values(Object(row)),
  );

/** Checks the content of the target after cloud.sql was copied. */
async function assertCopied(database: Database, generationOfLast = 2): Promise<void> {
  assert.deepEqual(
    await rowsOf(database, 'resource_providers', 'id, uuid, name, generation, root_provider_id, parent_provider_id'),
    [
      [1, '10000000-0000-4000-8000-000000000001', 'child of a later one', 3, 5, 5],
      [2, '10000000-0000-4000-8000-000000000002', 'Speicher für alle', 1, 2, null],
      [5, '10000000-0000-4000-8000-000000000005', 'hôte-東京', 9, 5, null],
    ],
  );
  assert.deepEqual((await rowsOf(database, 'resource_classes', 'id, name, created_at')).slice(1, 3), [
    [2, 'MEMORY_MB', null],
    [3, 'CUSTOM_LICENSE', null],
  ]);
  const classes = new Map((await readClasses(database)).map(({ name, id }) => [name, id]));
  assert.deepEqual(
    standardResourceClasses.filter((name) => (classes.get(name) ?? 10_000) >= 10_000),
    [],
  );
  assert.deepEqual(await rowsOf(database, 'inventories', 'id, allocation_ratio'), [
    [1, 16],
    [2, 1.1],
    [4, 0.9],
    [5, 123457],
  ]);
  assert.deepEqual(await rowsOf(database, 'resource_provider_traits', 'trait_id, resource_provider_id'), [
    [1, 1],
    [1, 5],
    [7, 2],
    [7, 5],
  ]);
  assert.deepEqual(await rowsOf(database, 'projects', 'id, external_id'), [
    [1, 'projet-é'],
    [2, '東京'],
  ]);
  assert.deepEqual(await rowsOf(database, 'users', 'id, external_id, created_at'), [[1, 'ада', null]]);
  assert.deepEqual(await rowsOf(database, 'consumers', 'id, generation, consumer_type_id'), [
    [1, 1, 1],
    [2, 4, null],
    [3, generationOfLast, 1],
  ]);
  const consumer = (last: string) => `30000000-0000-4000-8000-00000000000${last}`;
  // Allocations with their consumer in capitals now have the UUID as the consumer record has it.
  assert.deepEqual(await rowsOf(database, 'allocations', 'id, consumer_id, used'), [
    [1, consumer('a'), 2],
    [2, consumer('a'), 1024],
    [3, consumer('b'), 4],
    [6, consumer('b'), 1],
    [7, consumer('c'), 100],
  ]);
  assert.deepEqual(await rowsOf(database, 'traits', `id, name`).then((rows) => rows.slice(0, 2)), [
    [1, 'HW_CPU_X86_AVX2'],
    [7, 'CUSTOM_RAID'],
  ]);
  assert.equal(await isImportUnfinished(database), false);
  const loose = await sql`select conname from pg_constraint where condeferrable
    union all select tgname from pg_trigger where tgenabled <> 'O'`.execute(database.kysely);
  assert.deepEqual(loose.rows, [], 'foreign keys and triggers are as before');
}

/** What is reported of cloud.sql. */
const capitalsOfCloud =
  'Warning: allocations: 2 rows have capital letters in consumer_id (such as 30000000-0000-4000-8000-00000000000B). They are ' +
  'copied in small letters.';
const capitalsInNames =
  'Warning: resource_providers: 1 row has capital letters in name (such as Speicher für alle). MySQL finds them in any spelling, ' +
  'this service only in that one.';

for (const { name, start, into } of sourceServers('import')) {
  suite(`import from ${name}`, () => {
    let server: SourceServer;
    before(async () => {
      server = await start();
    });
    after(() => server?.stop());

    for (const engine of into) {
      const withTarget = (use: (database: Database, cloud: Cloud) => Promise<void>) =>
        withFreshDatabase(engine, async ({ settings }) => {
          const database = await openDatabase(settings);
          try {
            await use(database, await server.createCloud());
          } finally {
            await database.close();
          }
        });

      test(`all rows are copied, page by page, and new rows get new ids, on ${engine}`, () =>
        withTarget(async (database, cloud) => {
          const { imported, error, notes } = await run(cloud, database);
          assert.equal(error, '');
          assert.deepEqual([imported?.resource_providers, imported?.allocations, imported?.traits], [3, 5, 2]);
          assert.deepEqual(notes.slice(1), [
            capitalsOfCloud,
            capitalsInNames,
            ...[0, 2, 4, 5].map((done) => `allocations: ${done} of 5`),
            'Comparing all tables with the source.',
            'Verified: every table has the same number of rows and the same checksum in source and target.',
          ]);
          await assertCopied(database);
          const { id } = await database.kysely
            .insertInto('resource_providers')
            .values({ uuid: 'new', name: 'new', generation: 0 })
            .returning('id')
            .executeTakeFirstOrThrow();
          assert.ok(id > 5, `${id}`);
          const again = await run(cloud, database);
          assert.match(
            again.error,
            /^The target is not empty: it holds 1 traits, 1 resource_classes, 1 consumer_types, /,
          );
        }));

      test(`limits and the history that the target had before count what was imported, on ${engine}`, () =>
        withTarget(async (database, cloud) => {
          const [project, world] = ['projet-é', { database }];
          await writeLimits(database, { project, resources: { VCPU: 8 }, consumers: {}, known: null });
          await switchOn(world);
          assert.equal((await run(cloud, database)).error, '');
          const { projects } = await readLimits(database, { names: [project] }, 'none');
          assert.deepEqual(
            projects[0]?.usages.filter(({ className }) => className === 'VCPU').map(({ used }) => used),
            [2],
          );
          await takeInAll(world); // as a service does that starts
          assert.deepEqual(await differences(world), []);
        }));

      test(`an import that has lost its source continues after the last stored page, on ${engine}`, () =>
        withTarget(async (database, cloud) => {
          const broken = await run(cloud, database, { breakAt: { table: 'allocations', rows: 2 } });
          assert.match(
            broken.error,
            /^The connection to mysql:\/\/127\.0\.0\.1:\d+\/\w+ broke: .* Run the same "placement-manage import" again/,
          );
          assert.equal(broken.code, 69);
          assert.ok(await isImportUnfinished(database));
          const stored = await rowsOf(database, 'allocations', 'id, xmin::text');
          assert.ok(stored.length >= 2 && stored.length < 5, `${stored.length} rows`);

          const other = await run(cloud, database, { name: 'mysql://elsewhere:3306/cloud' });
          assert.match(other.error, /^The target holds an unfinished import from .*, not from mysql:\/\/elsewhere/);

          const { error, notes } = await run(cloud, database);
          assert.equal(error, '');
          assert.match(notes[3] ?? '', /^Continuing the import that was begun 2.*Z\.$/);
          assert.equal(notes[4], `allocations: ${stored.length} of 5`);
          assert.deepEqual((await rowsOf(database, 'allocations', 'id, xmin::text')).slice(0, stored.length), stored);
          await assertCopied(database);
        }));

      test(`an import starts over if the source has changed in between, on ${engine}`, () =>
        withTarget(async (database, cloud) => {
          await run(cloud, database, { breakAt: { table: 'allocations', rows: 2 } });
          await cloud.change('changed.sql');
          // The embedded database has no second connection to look at it meanwhile.
          let copied: unknown;
          const whenEmpty = async () => {
            if (engine === 'postgresql') copied = (await readUnfinishedImport(database))?.copied;
          };
          const { error, notes } = await run(cloud, database, { whenEmpty });
          assert.equal(error, '');
          assert.ok(
            notes.includes('The copied rows of consumers are not those of the source now: the import starts over.'),
          );
          if (engine === 'postgresql') assert.deepEqual(copied, {}, 'what the first import had copied is forgotten');
          await assertCopied(database, 3);
        }));

      for (const [what, written, complaint] of [
        [
          'added a row to',
          "insert into projects (id, external_id) values (100, 'stranger') on conflict do nothing",
          /^The copy is not what the source holds\. .*\nprojects: 2 rows .*, 3 with \d+ here$/,
        ],
        [
          'changed a row of',
          "update projects set external_id = 'stranger' where id = 1",
          /^The copy is not what the source holds\. .*\nprojects: 2 rows with checksum \d+ in the source, 2 with \d+ here$/,
        ],
      ] as const) {
        test(`a copy that another program has ${what} is refused, and made again, on ${engine}`, () =>
          withTarget(async (database, cloud) => {
            await run(cloud, database, { breakAt: { table: 'allocations', rows: 2 } });
            await sql`create function write_too() returns trigger language plpgsql as $$ begin
              ${sql.raw(written)}; return null; end $$`.execute(database.kysely);
            await sql`create trigger write_too after update on unfinished_import
              for each statement execute function write_too()`.execute(database.kysely);
            const failed = await run(cloud, database);
            assert.match(failed.error, complaint);
            await sql`drop function write_too cascade`.execute(database.kysely);
            const { error } = await run(cloud, database);
            assert.equal(error, '');
            await assertCopied(database);
          }));
      }

      test(`a source is imported without a revision, if it is not Nova's, on ${engine}`, () =>
        withTarget(async (database, cloud) => {
          await cloud.change('unstamped.sql');
          await cloud.change('nova.sql');
          assert.match(
            (await run(cloud, database)).error,
            /is the database of Nova's API\. Name a database of Placement/,
          );
          const plain = await server.createCloud();
          await plain.change('unstamped.sql');
          const { error, notes } = await run(plain, database);
          assert.equal(error, '');
          assert.match(
            notes[0] ?? '',
            / has no revision in alembic_version\. It has all tables of OpenStack Placement\.$/,
          );
          await assertCopied(database);
        }));

      test(`UUIDs that differ only by case are refused where the source distinguishes them, on ${engine}`, () =>
        withTarget(async (database, cloud) => {
          await cloud.change('told_apart.sql');
          const { error } = await run(cloud, database);
          const [, ...problems] = error.split('\n');
          const remedy =
            'and this service takes them for one. Correct the source: delete all but one of them by OpenStack Placement.';
          assert.deepEqual(problems, [
            `consumers: several values of uuid differ only by upper and lower case (such as 30000000-0000-4000-8000-00000000000a), ${remedy}`,
            'allocations: consumers without a record differ from others only by upper and lower case (such as ' +
              `30000000-0000-4000-8000-00000000000a), ${remedy}`,
          ]);
          assert.deepEqual(await rowsOf(database, 'resource_providers', 'id, uuid'), []);
        }));

      test(`all data that cannot be stored is reported, and nothing is copied, on ${engine}`, () =>
        withTarget(async (database, cloud) => {
          await cloud.change('broken.sql');
          const { error } = await run(cloud, database);
          assert.deepEqual(
            error.split('\n').map((line) => line.replace(/ Correct the source: .*;$/, '')),
            [
              'The source holds data that cannot be imported:',
              'resource_providers: 1 row has a parent_provider_id that resource_providers does not have (such as 7777), which cannot be stored.',
              'resource_provider_traits: 1 row has a trait_id that traits does not have (such as 7777), which cannot be stored.',
              'projects: 1 row has a NUL in external_id, which cannot be stored.',
              'inventories: 1 row has a total that is no integer of 32 bits (such as 5000000000), which cannot be stored.',
            ],
          );
          assert.equal(await isImportUnfinished(database), false);
          assert.deepEqual(await rowsOf(database, 'resource_providers', 'id, uuid'), []);
        }));
    }

    test('consumers, aggregates and providers whose UUIDs have capital letters are found in the copy, and names are reported', async () => {
      await withFreshDatabase('postgresql', async (target) => {
        const cloud = await server.createCloud();
        await cloud.change('letter_case.sql');
        const database = await openDatabase(target.settings);
        try {
          const { error, notes } = await run(cloud, database);
          assert.equal(error, '');
          assert.deepEqual(
            notes.filter((note) => note.startsWith('Warning: ')).sort(),
            [
              capitalsOfCloud,
              ...[
                'consumers: 1 row has capital letters in uuid (such as 30000000-0000-4000-8000-00000000000A). They are copied in small letters.',
                'placement_aggregates: 1 row has capital letters in uuid (such as AB000000-0000-4000-8000-0000000000CD). They are copied in small letters.',
                'projects: 1 row has capital letters in external_id (such as Projet-É). MySQL finds them in any spelling, this service only in that one.',
                'resource_providers: 1 row has capital letters in name (such as Host-2). MySQL finds them in any spelling, this service only in that one.',
                'resource_providers: 1 row has capital letters in uuid (such as AB000000-0000-4000-8000-000000000002). They are copied in small letters.',
              ].map((line) => `Warning: ${line}`),
            ].sort(),
          );
        } finally {
          await database.close();
        }
        const service = await openServiceOn(target);
        try {
          const send = requestsTo(service);
          const consumer = '30000000-0000-4000-8000-00000000000a';
          const { json } = await send('GET', `/allocations/${consumer}`);
          assert.equal(at(json, 'consumer_generation'), 1);
          const allocations = at(json, 'allocations');
          const owner = { project_id: 'Projet-É', user_id: 'ада', consumer_type: 'INSTANCE' };
          const second = await send('PUT', `/allocations/${consumer}`, {
            allocations,
            ...owner,
            consumer_generation: null,
          });
          assert.equal(second.status, 409, second.text);
          const again = { allocations, ...owner, consumer_generation: 1 };
          // PUT takes every spelling.
          assert.equal((await send('PUT', `/allocations/${consumer.toUpperCase()}`, again)).status, 204);
          const usages = await send('GET', `/usages?project_id=${encodeURIComponent('Projet-É')}`);
          assert.deepEqual(at(usages.json, 'usages', 'INSTANCE', 'VCPU'), 2);
          const members = await send('GET', '/resource_providers?member_of=ab000000-0000-4000-8000-0000000000cd');
          assert.deepEqual(at(members.json, 'resource_providers', 1, 'name'), 'Host-2');
          for (const uuid of ['AB000000-0000-4000-8000-000000000002', 'ab000000-0000-4000-8000-000000000002']) {
            assert.equal((await send('GET', `/resource_providers/${uuid}`)).status, uuid.startsWith('a') ? 200 : 404);
          }
        } finally {
          await service.close();
        }
      });
    });

    test('a process that serves the empty target shows the copy as soon as the import has ended', async () => {
      await withFreshDatabase('postgresql', async (target) => {
        const service = await openServiceOn(target);
        const database = await openDatabase(target.settings);
        try {
          const tree = async () => {
            const { json } = await requestsTo(service)(
              'GET',
              '/resource_providers?in_tree=10000000-0000-4000-8000-000000000001',
            );
            return at(json, 'resource_providers');
          };
          // The service reads in its log that all rows were deleted, and needs one more row there to read the copy.
          const seenMeanwhile: unknown[] = [];
          const whenEmpty = async () => seenMeanwhile.push(await tree());
          assert.deepEqual(await tree(), []);
          const { error } = await run(await server.createCloud(), database, { whenEmpty });
          assert.equal(error, '');
          assert.deepEqual(seenMeanwhile.at(-1), []);
          const found = await tree();
          assert.ok(Array.isArray(found) && found.length === 2, JSON.stringify(found));
        } finally {
          await database.close();
          await service.close();
        }
      });
    });
  });
}
