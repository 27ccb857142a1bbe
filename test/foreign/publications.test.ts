/** A publication of all tables, which programs make that capture changes: rows of published tables are still updated and deleted. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { pruneChanges } from '../../db/fleet/prune_changes.ts';
import { compactUsages } from '../../db/statements/claims/project_usages.ts';
import { closeRecords, switchHistoryOff } from '../../db/statements/usage_history.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

test('every table has a replica identity', () =>
  withTestService(anyEngine, {}, async ({ database: { kysely } }) => {
    const { rows } = await sql`
      select relname as name from pg_class c
      where relkind = 'r' and relnamespace = current_schema()::regnamespace and relreplident <> 'f'
        and not (relreplident = 'd' and exists (select from pg_index i where i.indrelid = c.oid and i.indisprimary))`.execute(
      kysely,
    );
    assert.deepEqual(rows, []);
  }));

test('while all tables are published, limits, the history and the change log are kept', () =>
  withTestService('postgresql', { history: { enabled: true } }, async (service) => {
    const { database } = service;
    await sql`create publication everything for all tables`.execute(database.kysely);
    const send = requestsTo(service, 'placement 2.7');
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', '/limits/p', { resources: { VCPU: 2 }, consumers: {}, generation: null }));
    for (let round = 0; round < 3; round += 1) {
      const consumer = randomUUID();
      const claim = { ...newClaim({ [host]: { VCPU: 2 } }), project_id: 'p' };
      accepted(await send('PUT', `/allocations/${consumer}`, claim));
      assert.equal((await send('PUT', `/allocations/${randomUUID()}`, claim)).status, 403);
      accepted(await send('DELETE', `/allocations/${consumer}`));
    }
    await compactUsages(database);
    await sql`delete from project_usages`.execute(database.kysely);
    accepted(await send('DELETE', '/limits/p'));
    await pruneChanges(database, await pruneChanges(database, undefined));
    assert.ok(await switchHistoryOff(database));
    while (await closeRecords(database, 100));
  }));

test('a deletion that PostgreSQL refuses for want of a replica identity is no refused login', () =>
  withTestService('postgresql', {}, async (service) => {
    const { kysely } = service.database;
    const send = requestsTo(service, 'placement 2.7');
    const [host, consumer] = [randomUUID(), randomUUID()];
    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', `/allocations/${consumer}`, newClaim({ [host]: { VCPU: 2 } })));
    await sql`alter table allocations replica identity nothing`.execute(kysely);
    await sql`create publication everything for all tables`.execute(kysely);
    const { status, text } = await send('DELETE', `/allocations/${consumer}`);
    assert.equal(status, 500);
    assert.match(text, /Unexpected error; the log tells more/);
    await sql`drop publication everything`.execute(kysely);
    accepted(await send('DELETE', `/allocations/${consumer}`));
  }));
