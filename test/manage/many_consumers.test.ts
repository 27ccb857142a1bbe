import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { startCommand, withCommands } from './commands.ts';
import { countStrays, insertOldAllocations, insertOldProvider, newUuids } from './old_data.ts';

/*
 * Requests run at the same time as the migration: on new consumers, and on old ones. These requests make a record for an
 * old consumer or delete its allocations, at the same moment as the migration. The test prints how long the migration
 * takes. The goal is 10 s for ROWS=100000 on an idle machine.
 */
const count = Number(process.env.ROWS ?? 30_000);
const writers = 8;

test(`${count} incomplete consumers get a record while claims go on`, async (t) => {
  await withCommands('postgresql', 'migrated', async ({ config, configFile, folder, run, withDatabase }) => {
    const old = newUuids(count);
    const provider = await withDatabase(async (database) => {
      const made = await insertOldProvider(database, 'old');
      await insertOldAllocations(database, made.id, old);
      await sql`analyze`.execute(database.kysely);
      return made;
    });
    const service = await openServiceOn({ settings: { connection: '', maxPoolSize: 1 }, config, drop: async () => {} });
    const send = requestsTo(service);
    const request = async (method: string, consumer: string, version: string, body?: object): Promise<number> =>
      (await send(method, `/allocations/${consumer}`, body, `placement ${version}`)).status;
    const claim = { allocations: { [provider.uuid]: { resources: { VCPU: 2 } } }, project_id: 'p', user_id: 'u' };
    const empty = { allocations: {}, project_id: 'p', user_id: 'u', consumer_generation: null };
    // In the order of the migration.
    const sorted = await withDatabase(async ({ kysely }) =>
      (await kysely.selectFrom('allocations').select('consumer_id').orderBy('consumer_id').execute()).map(
        ({ consumer_id }) => consumer_id,
      ),
    );

    const started = performance.now();
    const migration = startCommand('placement-manage', ['--config-file', configFile, 'online-data-migrations'], folder);
    let migrating = true;
    // Requests take the old consumers that the migration reaches next, each consumer once, so that both meet.
    let migrated = 0;
    let index = 0;
    migration.child.stdout.on('data', (text: string) => {
      for (const match of text.matchAll(/create_incomplete_consumers, (\d+) migrated/g)) migrated += Number(match[1]);
    });
    const nextAhead = (): string => {
      index = Math.max(index + 1, migrated + 10);
      return sorted[index] ?? '';
    };
    const statuses = new Map<string, number>();
    const tell = (what: string, status: number): void => {
      statuses.set(`${what} ${status}`, (statuses.get(`${what} ${status}`) ?? 0) + 1);
    };
    const write = async (writer: number): Promise<void> => {
      for (let turn = writer; migrating && index < count - 100; turn += 1) {
        const consumer = nextAhead();
        if (turn % 4 === 0) tell('replace', await request('PUT', consumer, '1.12', claim));
        else if (turn % 4 === 1) tell('delete', await request('DELETE', consumer, '1.12'));
        else if (turn % 4 === 2) tell('empty', await request('PUT', consumer, '1.28', empty));
        else tell('new', await request('PUT', newUuids(1)[0] ?? '', '1.12', claim));
      }
    };
    const writing = Array.from({ length: writers }, (_, writer) => write(writer));
    const ended = await migration.ended;
    const seconds = (performance.now() - started) / 1000;
    migrating = false;
    await Promise.all(writing);
    t.diagnostic(`${count} incomplete consumers: ${seconds.toFixed(1)} s, with the requests ${inspectMap(statuses)}`);

    assert.equal(ended.code, 0, ended.stdout.slice(-2000) + ended.stderr);
    for (const status of statuses.keys()) assert.match(status, / 204$|^empty 409$/);
    await withDatabase(async (database) => {
      assert.deepEqual(await countStrays(database), { allocations: 0, consumers: 0 });
    });
    assert.equal((await run('placement-manage', 'online-data-migrations', '--max-count', '1')).code, 0, 'all is done');
    await service.close();
  });
});

const inspectMap = (map: ReadonlyMap<string, number>): string =>
  [...map].map(([what, times]) => `${what}: ${times}`).join(', ');
