import type { Consumer, ConsumerQuery } from '../../src/client/consumers.ts';
import { ApiError, VersionError } from '../../src/client/errors.ts';
import { type Resources, sumOfResources } from '../../src/client/filters.ts';
import { forEach } from '../../src/client/for_each.ts';
import { placement } from '../session.ts';

/** What each consumer has, by class, all its providers together. */
export type HeldAmounts = ReadonlyMap<string, Resources>;

/** How many holdings are read at once. */
const pageSize = 1_000;
/** For how many consumers that were found by their terms the holdings are read, each by a request. */
const mostRead = 100;
const requestsAtOnce = 8;

function add(sums: Map<string, Resources>, consumer: string, resources: Resources): void {
  sums.set(consumer, sumOfResources([sums.get(consumer) ?? {}, resources]));
}

/**
 * Reads what the consumers of a page have, by the conditions by which they were found. @param after the page begins behind this UUID
 * @returns undefined if the service is too old for that
 */
export async function readAmounts(
  consumers: readonly Consumer[],
  { expiring_before, ...conditions }: Omit<ConsumerQuery, 'name'>,
  after: string | undefined,
  signal: AbortSignal,
): Promise<HeldAmounts | undefined> {
  const last = consumers.at(-1)?.uuid;
  if (last === undefined) return new Map();
  const sums = new Map<string, Resources>();
  try {
    if (expiring_before !== undefined) {
      // Holdings are not found by this condition.
      const read = async ({ uuid }: Consumer) => {
        const { allocations } = await placement.allocations.show(uuid, { signal });
        for (const { resources } of Object.values(allocations)) add(sums, uuid, resources);
      };
      await forEach(consumers.slice(0, mostRead), read, requestsAtOnce);
      return sums;
    }
    for (let marker = after; ; ) {
      const page = await placement.holdings.page({ ...conditions, limit: pageSize, marker }, { signal });
      for (const { consumer, resources } of page) if (consumer <= last) add(sums, consumer, resources);
      marker = page.at(-1)?.consumer;
      if (marker === undefined || marker >= last || page.length < pageSize) return sums;
    }
  } catch (error) {
    if (error instanceof VersionError || (error instanceof ApiError && error.status === 403)) return undefined;
    throw error;
  }
}
