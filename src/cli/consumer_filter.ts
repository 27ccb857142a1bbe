import { instead, isTooOld } from '../client/errors.ts';
import type { Holding, HoldingQuery, Placement } from '../client/index.ts';
import { uuidIfNamed } from './find_provider.ts';

/** The options of commands that select consumers, or what they hold and held. */
export type ConsumerFilterOptions = {
  readonly project?: string;
  readonly user?: string;
  readonly type?: string;
  /** The name or the UUID of a provider. */
  readonly provider?: string;
  readonly inTree?: string;
};

/** The parameters of a query for these options. @throws CommandFailure with a hint if a provider does not exist */
export const consumerFilter = async (
  placement: Placement,
  { project, user, type, provider, inTree }: ConsumerFilterOptions,
) => ({
  project_id: project,
  user_id: user,
  consumer_type: type,
  resource_provider: await uuidIfNamed(placement, provider),
  in_tree: await uuidIfNamed(placement, inTree),
});

/** The allocations of consumers, by UUID; empty for a service before 2.9, which cannot list many. */
export async function holdingsByConsumer(
  placement: Placement,
  query: HoldingQuery,
): Promise<ReadonlyMap<string, readonly Holding[]>> {
  const holdings = await Array.fromAsync(placement.holdings.list(query)).catch(instead([], isTooOld));
  return Map.groupBy(holdings, ({ consumer }) => consumer);
}
