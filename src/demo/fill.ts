import { forEach } from '../client/for_each.ts';
import type { Placement } from '../client/index.ts';
import { numberOfVersion, versionNumber } from '../client/microversions.ts';
import { newInstance, placeAll } from './instances.ts';
import { limitJobs } from './jobs.ts';
import { customTraits, type PlannedProvider, planFleet } from './plan.ts';
import { openRandom } from './random.ts';

/** How many providers get their inventories by one request. */
const providersAtOnce = 200;
/** The number of calls at a time. The service writes simultaneous calls in few statements. */
const callsAtOnce = 64;
/** How many consumers are placed by one request. */
const consumersAtOnce = 50;
/** The version that introduced claims by query. */
const placingSince = '2.4';
/** How many consumers a full host has. */
const consumersOfHost = 11;

/** The created providers and consumers. */
export type Filled = { readonly hosts: number; readonly providers: number; readonly consumers: readonly string[] };

/**
 * Fills an empty service with a fleet, by the public API.
 *
 * @param report gets a line for each step
 * @throws Error if the service has providers, or is too old to place consumers: then nothing is created
 */
export async function fillDemo(placement: Placement, hosts: number, report: (line: string) => void): Promise<Filled> {
  const { version } = await placement.serverVersion();
  if (numberOfVersion(version) < versionNumber(placingSince)) {
    throw new Error(`A demo fleet needs microversion ${placingSince}, and requests to the service are at ${version}.`);
  }
  const present = await placement.providerSummaries.page({ limit: 1 });
  if (present.length > 0) {
    throw new Error(
      `The service has providers, such as ${present[0]?.name}. A demo fleet is only made in an empty service: start one with ` +
        'OS_API__AUTH_STRATEGY=noauth2 OS_PLACEMENT_DATABASE__EMBEDDED_PATH=memory:// placement-api --port 8779.',
    );
  }
  const { racks, waves } = planFleet(hosts);
  for (const trait of customTraits) await placement.traits.ensure(trait);
  const providers = waves.flat();
  report(`Making ${providers.length} providers...`);
  for (const wave of waves) await forEach(wave, (provider) => makeProvider(placement, provider), callsAtOnce);
  report('Giving them inventories...');
  for (let first = 0; first < providers.length; first += providersAtOnce) {
    const some = providers.slice(first, first + providersAtOnce);
    const inventories = Object.fromEntries(
      some.map((each) => [
        each.uuid,
        { inventories: each.inventories, resource_provider_generation: generationOf(each) },
      ]),
    );
    await placement.reshape({ inventories, allocations: {} });
  }
  report('Placing consumers...');
  const random = openRandom(hosts);
  const batches = racks.flatMap(({ aggregate, hosts, wanted }) => {
    const instances = Array.from({ length: Math.round(hosts * wanted * consumersOfHost) }, () =>
      newInstance(random, aggregate),
    );
    const parts: (typeof instances)[] = [];
    while (instances.length > 0) parts.push(instances.splice(0, consumersAtOnce));
    return parts;
  });
  const consumers = (await forEach(batches, (batch) => placeAll(placement, batch))).flat();
  await limitJobs(placement);
  return { hosts, providers: providers.length, consumers };
}

/** How often a provider was written before it gets its inventories. */
const generationOf = ({ aggregates, traits }: PlannedProvider): number =>
  (aggregates.length > 0 ? 1 : 0) + (traits.length > 0 ? 1 : 0);

async function makeProvider(placement: Placement, provider: PlannedProvider): Promise<void> {
  const { uuid, name, parent, aggregates, traits } = provider;
  await placement.providers.create({ uuid, name, parent_provider_uuid: parent });
  let resource_provider_generation = 0;
  if (aggregates.length > 0) {
    await placement.aggregates.set(uuid, { aggregates, resource_provider_generation });
    resource_provider_generation++;
  }
  if (traits.length > 0) await placement.providerTraits.set(uuid, { traits, resource_provider_generation });
}
