import type { ConfigOverrides } from '../support/services.ts';
import { allocations, api, cors, corsForAll, openPolicy, proxy, secureRbac } from './fixtures/api.ts';
import { compute, oldServices } from './fixtures/compute.ts';
import { hosts, nestedAndShared, smallBodies, upstreamRange } from './fixtures/hosts.ts';
import { environmentOf, type Fixture, type FixtureTarget, makeFixture } from './fixtures/make.ts';
import { multiSegment } from './fixtures/multi_segment.ts';
import { deepNumaNetwork, numaNetwork } from './fixtures/network.ts';
import { migratedOldData, oldData } from './fixtures/old_data.ts';
import { granular, nonSharedStorage, numaAggregates, sharedStorage } from './fixtures/storage.ts';

/** The fixtures, by the names that gabbi files use. */
const fixtures: Readonly<Record<string, Fixture>> = {
  APIFixture: api,
  AllocationFixture: allocations,
  SharedStorageFixture: sharedStorage,
  NUMAAggregateFixture: numaAggregates,
  NUMANetworkFixture: numaNetwork,
  DeepNUMANetworkFixture: deepNumaNetwork,
  NonSharedStorageFixture: nonSharedStorage,
  CORSFixture: cors,
  CORSForAllFixture: corsForAll,
  ProxyFixture: proxy,
  GranularFixture: granular,
  OpenPolicyFixture: openPolicy,
  SecureRBACPolicyFixture: secureRbac,
  LegacyRBACPolicyFixture: api,
  NeutronQoSMultiSegmentFixture: multiSegment,
  HostsFixture: hosts,
  NestedAndSharedFixture: nestedAndShared,
  SmallBodiesFixture: smallBodies,
  UpstreamRangeFixture: upstreamRange,
  ComputeFixture: compute,
  OldServicesFixture: oldServices,
  OldDataFixture: oldData,
  MigratedOldDataFixture: migratedOldData,
};

/** The configuration that the fixtures of a gabbi file need, and the data that they make for its tests. */
export type Setting = {
  readonly config: ConfigOverrides;
  /** The rules of the policy file. Empty if the defaults apply. */
  readonly policy: Readonly<Record<string, string>>;
  readonly environment: Readonly<Record<string, string>>;
  /** Makes the data in a service without data. */
  make(target: FixtureTarget): Promise<void>;
};

/** @throws Error if there is no fixture with a name */
export function settingOf(names: readonly string[]): Setting {
  const chosen = [api, ...names.map(fixtureNamed)];
  const environment = environmentOf(chosen);
  return {
    config: Object.assign({}, ...chosen.map((fixture) => fixture.config)),
    policy: Object.assign({}, ...chosen.map((fixture) => fixture.policy)),
    environment,
    make: async (target) => {
      for (const fixture of chosen) await makeFixture(fixture, target, environment);
    },
  };
}

function fixtureNamed(name: string): Fixture {
  const fixture = fixtures[name];
  if (fixture !== undefined) return fixture;
  throw new Error(`There is no fixture ${name}. Use one of ${Object.keys(fixtures).join(', ')}, or add it.`);
}
