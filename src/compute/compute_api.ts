import type { Logger } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import type { Config } from '../config/config.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { ServedApi } from '../http/dialect.ts';
import { bindEndpoints } from '../rest/endpoint.ts';
import { computeDialect } from './dialect.ts';
import { openHeartbeats } from './heartbeats.ts';
import { computeService } from './microversions.ts';
import { retireSilentServices } from './retirement.ts';
import { computeRoutes } from './routes.ts';
import { openPaths } from './versions.ts';

/** The Compute API, and what it does in the background. */
export type ComputeApi = {
  readonly served: ServedApi;
  /** Ends the work in the background. */
  close(): Promise<void>;
};

/** Opens the Compute API: the registry of services and hypervisors under `/compute`. */
export function openComputeApi(dependencies: {
  readonly config: Config;
  readonly database: Database;
  readonly fleet: FleetKeeper;
  readonly logger: Logger;
}): ComputeApi {
  const { config, database, fleet, logger } = dependencies;
  const { serviceDownTime, retireAfter } = config.compute;
  const heartbeats = openHeartbeats(database, fleet, serviceDownTime);
  const service = computeService;
  return {
    served: {
      root: '/compute',
      openPaths,
      endpoints: bindEndpoints(computeRoutes, { config, database, fleet, heartbeats, service }),
      service,
      dialect: computeDialect,
    },
    close: retireSilentServices(database, retireAfter, logger),
  };
}
