import { fork } from 'node:child_process';
import { once } from 'node:events';
import type { Config } from '../../src/config/config.ts';
import { listen } from '../../src/http/server/listen.ts';
import { openService } from '../../src/start/service.ts';
import { testConfig } from '../support/services.ts';

/** A service with the registry in its own process. */
export async function startRegistry(placementDatabase: Partial<Config['placementDatabase']>) {
  const child = fork(import.meta.filename, [JSON.stringify(placementDatabase)], { execArgv: [] });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`The service ended with ${code} before it listened.`);
  });
  ended.catch(() => {});
  const [{ url }] = (await Promise.race([once(child, 'message'), ended])) as [{ readonly url: string }]; // sent below
  return {
    url,
    kill: async () => {
      child.kill('SIGKILL');
      await ended.catch(() => {});
    },
  };
}

if (process.argv[1] === import.meta.filename) {
  const [, , settings = '{}'] = process.argv;
  const service = await openService(
    testConfig({ placementDatabase: JSON.parse(settings), compute: { enabled: true } }),
  );
  const { url } = await listen(service.app, { host: '127.0.0.1', port: 0 });
  process.on('disconnect', () => process.exit());
  process.send?.({ url });
}
