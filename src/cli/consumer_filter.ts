import { type Holding, type HoldingQuery, type Placement, VersionError } from '../client/index.ts';
import { findProvider } from './find_provider.ts';

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
export async function consumerFilter(
  placement: Placement,
  { project, user, type, provider, inTree }: ConsumerFilterOptions,
) {
  const uuidOf = async (which: string | undefined) =>
    which === undefined ? undefined : (await findProvider(placement, which)).uuid;
  return {
    project_id: project,
    user_id: user,
    consumer_type: type,
    resource_provider: await uuidOf(provider),
    in_tree: await uuidOf(inTree),
  };
}

/** The allocations of consumers, by UUID; empty for a service before 2.9, which cannot list many. */
export async function holdingsByConsumer(
  placement: Placement,
  query: HoldingQuery,
): Promise<ReadonlyMap<string, readonly Holding[]>> {
  try {
    return Map.groupBy(await Array.fromAsync(placement.holdings.list(query)), ({ consumer }) => consumer);
  } catch (error) {
    if (error instanceof VersionError && error.problem === 'too old') return new Map();
    throw error;
  }
}
