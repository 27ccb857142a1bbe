import type { PlacementService } from '../../src/start/service.ts';
import { withFreshDatabase } from './engines.ts';
import { requestsTo, type Send } from './requests.ts';
import { openServiceOn } from './services.ts';

/** Two services on one database. The fleet of each is as old as its last refresh, which requests to the other do not change. */
export type TwoServices = {
  readonly services: readonly [PlacementService, PlacementService];
  /** Requests to the first one, at the newest version. */
  readonly send: Send;
  /** Requests to the second one, likewise. */
  readonly sendToOther: Send;
  /** Makes the fleet of the first one new. */
  readonly refresh: () => Promise<unknown>;
};

export async function withTwoServices(use: (both: TwoServices) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async (database) => {
    const first = await openServiceOn(database);
    try {
      const second = await openServiceOn(database);
      try {
        await use({
          services: [first, second],
          send: requestsTo(first, 'placement 2.6'),
          sendToOther: requestsTo(second, 'placement 2.6'),
          refresh: () => first.fleet.fresh(),
        });
      } finally {
        await second.close();
      }
    } finally {
      await first.close();
    }
  });
}
