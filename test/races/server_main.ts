import { sql } from 'kysely';
import { pino } from 'pino';
import type { Config } from '../../src/config/config.ts';
import { listen } from '../../src/http/server/listen.ts';
import { openService } from '../../src/start/service.ts';
import { testConfig } from '../support/services.ts';

/*
 * A server in a separate process, for tests that need several servers, or that kill one. Its parent sends it the configuration of the
 * database that it is to serve, and gets its URL. It answers SQL statements, because no other process can open an embedded database. A
 * message with nothing asks for the memory of the process, after a garbage collection if it was started with --expose-gc. When its parent
 * has made it close its service, it may serve another database. It ends with its parent.
 */

const logger = pino({ level: 'error' }, pino.destination({ dest: process.stderr.fd, sync: true }));

type Served = Awaited<ReturnType<typeof serve>>;

let served: Served | undefined;

async function serve(placementDatabase: Partial<Config['placementDatabase']>) {
  const service = await openService(testConfig({ placementDatabase }), { logger });
  const { url, close } = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
  return {
    url,
    database: service.database,
    close: async () => {
      service.endWaits();
      await close();
      await service.close();
    },
  };
}

type Message = {
  readonly id: number;
  readonly serve?: Partial<Config['placementDatabase']>;
  readonly close?: true;
  readonly statement?: string;
};

process.on('disconnect', () => process.exit());
process.on('message', async ({ id, serve: settings, close, statement }: Message) => {
  const answer = (rows: readonly unknown[]) => process.send?.({ id, rows });
  if (settings !== undefined) {
    served = await serve(settings);
    answer([{ url: served.url }]);
  } else if (close) {
    await served?.close();
    served = undefined;
    answer([]);
  } else if (statement === undefined) {
    globalThis.gc?.();
    answer([process.memoryUsage()]);
  } else {
    try {
      if (served === undefined) throw new Error('It serves no database.');
      const { rows } = await sql.raw(statement).execute(served.database.kysely);
      answer(rows);
    } catch (error) {
      process.send?.({ id, error: String(error) });
    }
  }
});
