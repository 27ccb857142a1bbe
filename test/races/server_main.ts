import { sql } from 'kysely';
import { pino } from 'pino';
import { listen } from '../../src/http/server/listen.ts';
import { openService } from '../../src/start/service.ts';
import { testConfig } from '../support/services.ts';

/*
 * A server in a separate process, for tests that need several servers, or that kill one. The first argument is the
 * configuration of the database as JSON. The process sends its URL to its parent, and answers the SQL statements that
 * it receives, because no other process can open an embedded database. A message without a statement asks for the memory
 * of the process, after a garbage collection if it was started with --expose-gc. It ends with its parent.
 */

const placementDatabase = JSON.parse(process.argv[2] ?? '{}');
const logger = pino({ level: 'error' }, pino.destination({ dest: process.stderr.fd, sync: true }));
const service = await openService(testConfig({ placementDatabase }), { logger });
const { url } = await listen(service.app, { host: '127.0.0.1', port: 0 });
process.on('disconnect', () => process.exit());
process.on('message', async ({ id, statement }: { readonly id: number; readonly statement?: string }) => {
  if (statement === undefined) {
    globalThis.gc?.();
    process.send?.({ id, rows: [process.memoryUsage()] });
    return;
  }
  try {
    const { rows } = await sql.raw(statement).execute(service.database.kysely);
    process.send?.({ id, rows });
  } catch (error) {
    process.send?.({ id, error: String(error) });
  }
});
process.send?.({ url });
