import { listen } from '../../src/http/server/listen.ts';
import type { PlacementService } from '../../src/start/service.ts';
import type { Engine } from '../support/engines.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';

/** Calls back with the URL of a service that listens, and ends what waits for changes before it closes. */
export const serve = (
  engine: Engine,
  overrides: ConfigOverrides,
  use: (url: string, service: PlacementService) => Promise<void>,
): Promise<void> =>
  withTestService(engine, overrides, async (service) => {
    const server = await listen(service.app, { host: '127.0.0.1', port: 0, drainMs: 5_000 });
    try {
      await use(server.url, service);
    } finally {
      service.endWaits();
      await server.close();
    }
  });
