import type { Database } from '../../db/connect.ts';
import type { AllocationReads } from '../claims/allocation_reads.ts';
import type { Claims } from '../claims/claims.ts';
import type { Deletions } from '../claims/deletions.ts';
import type { Heartbeats } from '../compute/heartbeats.ts';
import type { Config } from '../config/config.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { ProviderWrites } from '../fleet/provider_writes.ts';
import type { Service } from './microversions.ts';

/** What the handlers of the API work with. */
export type Parts = {
  /** The versions that are offered. */
  readonly service: Service;
  readonly config: Config;
  readonly database: Database;
  readonly fleet: FleetKeeper;
  readonly providerWrites: ProviderWrites;
  readonly claims: Claims;
  readonly deletions: Deletions;
  readonly allocationReads: AllocationReads;
  readonly heartbeats: Heartbeats;
};
