import type { Logger } from 'pino';
import type { Database } from '../../db/engine/connect.ts';
import type { AllocationReads } from '../claims/allocation_reads.ts';
import type { Claims } from '../claims/claims.ts';
import type { Deletions } from '../claims/deletions.ts';
import type { WaitingClaims } from '../claims/waiting/waiting.ts';
import type { Config } from '../config/config.ts';
import type { Followers } from '../fleet/follow/followers.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Service } from '../placement/versions.ts';
import type { ProviderWrites } from './resource_providers/provider_writes.ts';

/** What the handlers of the Placement API work with. */
export type Dependencies = {
  /** The versions that are offered. */
  readonly service: Service;
  readonly config: Config;
  readonly database: Database;
  readonly fleet: FleetKeeper;
  readonly providerWrites: ProviderWrites;
  readonly claims: Claims;
  /** Claims that wait until they can be written. */
  readonly waiting: WaitingClaims;
  readonly deletions: Deletions;
  readonly allocationReads: AllocationReads;
  readonly followers: Followers;
  /** For events that operators must be able to look up later. */
  readonly logger: Pick<Logger, 'info'>;
};
