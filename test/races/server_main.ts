import { sql } from 'kysely';
import { listen } from '../../src/http/listen.ts';
import { openService } from '../../src/service.ts';
import { testConfig } from '../services.ts';

/*
 * A server of its own for tests that need several, or that kill one. The first argument is the database's configuration
 * as JSON. It tells its URL to the process that forked it, and answers SQL that it is sent: nobody else can ask an
 * embedded database. It ends when that process is gone.
 */

const placementDatabase = JSON.parse(process.argv[2] ?? '{}');
const service = await openService(testConfig({ placementDatabase }));
const { url } = await listen(service.app, { host: '127.0.0.1', port: 0 });
process.on('disconnect', () => process.exit());
process.on('message', async ({ id, statement }: { readonly id: number; readonly statement: string }) => {
  try {
    const { rows } = await sql.raw(statement).execute(service.database.kysely);
    process.send?.({ id, rows });
  } catch (error) {
    process.send?.({ id, error: String(error) });
  }
});
process.send?.({ url });
