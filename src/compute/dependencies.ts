import type { Database } from '../../db/engine/connect.ts';
import type { Config } from '../config/config.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Service } from '../placement/versions.ts';
import type { Heartbeats } from './heartbeats.ts';

/** What the handlers of the Compute API work with. */
export type ComputeDependencies = {
  /** The versions that are offered. */
  readonly service: Service;
  readonly config: Config;
  readonly database: Database;
  readonly fleet: FleetKeeper;
  readonly heartbeats: Heartbeats;
};
