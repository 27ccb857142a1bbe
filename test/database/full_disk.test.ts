/** A database without disk or memory left, or whose files cannot be used, refuses writes for now: the client may repeat them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { engines } from '../engines.ts';
import { accepted, makeProvider, newClaim, requestsTo } from '../requests.ts';
import { withTestService } from '../services.ts';

for (const engine of engines) {
  for (const condition of ['disk_full', 'out_of_memory', 'io_error', 'duplicate_file']) {
    test(`${condition} is a 503 with Retry-After, on ${engine}`, async () => {
      await withTestService(engine, {}, async (service) => {
        const send = requestsTo(service);
        const host = randomUUID();
        await makeProvider(send, host, { VCPU: { total: 8 } });
        const { kysely } = service.database;
        await sql`
          create function refuse() returns trigger language plpgsql as $$
            begin raise exception 'no room' using errcode = '${sql.raw(condition)}'; end $$`.execute(kysely);
        const tables = ['allocations', 'resource_providers'];
        for (const table of tables) {
          await sql`create trigger refuse before insert on ${sql.table(table)} execute function refuse()`.execute(
            kysely,
          );
        }
        const claim = () => send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } }));
        const make = () => send('POST', '/resource_providers', { name: randomUUID() });
        for (const write of [claim, make]) {
          const { status, headers } = await write();
          assert.equal(status, 503);
          assert.ok(headers.has('retry-after'));
        }
        for (const table of tables) await sql`drop trigger refuse on ${sql.table(table)}`.execute(kysely);
        accepted(await claim());
        accepted(await make());
      });
    });
  }
}
