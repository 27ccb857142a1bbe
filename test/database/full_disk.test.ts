/** A database without disk or memory left, or whose files cannot be used, refuses writes for now: the client may repeat them. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { pino } from 'pino';
import type { PlacementService } from '../../src/start/service.ts';
import { type Engine, engines, freshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';

type Line = { readonly level: number; readonly msg: string; readonly reason?: string };

/** Calls back with a service and what it has warned of in its log. */
async function withLoggingService(
  engine: Engine,
  use: (service: PlacementService, warnings: () => readonly Partial<Line>[]) => Promise<void>,
): Promise<void> {
  const lines: Line[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const database = await freshDatabase(engine);
  // On a busy machine a statement may be slow, and would be logged.
  const service = await openServiceOn(database, { placementDatabase: { slowStatementMs: -1 } }, { logger });
  try {
    const { warn } = logger.levels.values;
    await use(service, () =>
      lines.filter(({ level }) => level >= (warn ?? 0)).map(({ msg, reason }) => ({ msg, ...(reason && { reason }) })),
    );
  } finally {
    await service.close();
    await database.drop();
  }
}

for (const engine of engines) {
  for (const condition of ['disk_full', 'out_of_memory', 'io_error', 'duplicate_file']) {
    test(`${condition} is a 503 with Retry-After, and one line of the log, on ${engine}`, async () => {
      await withLoggingService(engine, async (service, warnings) => {
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
          const { status, headers, json } = await write();
          assert.equal(status, 503);
          assert.ok(headers.has('retry-after'));
          assert.match(String(at(json, 'errors', 0, 'detail')), /no disk or memory left/);
          accepted(await send('GET', `/resource_providers/${host}/usages`)); // the database does answer
        }
        const message =
          'The database has no disk or memory left, or cannot use its files: requests that need them are answered 503';
        assert.deepEqual(warnings(), [{ msg: message, reason: 'no room' }]);
        for (const table of tables) await sql`drop trigger refuse on ${sql.table(table)}`.execute(kysely);
        accepted(await claim());
        accepted(await make());
      });
    });
  }
}
