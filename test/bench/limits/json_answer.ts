import { quantile } from '../closed_loop.ts';
import { flatHost, providerUuid } from '../data_set.ts';
import { bare, type Limit } from './limit.ts';

/** L3: the text of an answer of 10,000 candidates, written from objects, and copied from cached pieces. */
export const jsonLimits: readonly Limit[] = [
  limit('L3 10,000 candidates by JSON.stringify', () => {
    const objects = answer();
    return () => Buffer.byteLength(JSON.stringify(objects));
  }),
  limit('L3 10,000 candidates by joining kept strings', () => {
    const { allocation_requests: requests, provider_summaries: summaries } = answer();
    const candidates = requests.map((request) => JSON.stringify(request));
    const providers = Object.entries(summaries).map(([uuid, summary]) => `"${uuid}":${JSON.stringify(summary)}`);
    return () =>
      Buffer.from(`{"allocation_requests":[${candidates.join()}],"provider_summaries":{${providers.join()}}}`).length;
  }),
  limit('L3 10,000 candidates by copying kept bytes', () => {
    const { allocation_requests: requests, provider_summaries: summaries } = answer();
    const pieces = [
      ...requests.map((request) => Buffer.from(`${JSON.stringify(request)},`)),
      ...Object.entries(summaries).map(([uuid, summary]) => Buffer.from(`"${uuid}":${JSON.stringify(summary)},`)),
    ];
    const target = Buffer.allocUnsafe(pieces.reduce((bytes, piece) => bytes + piece.length, 0));
    return () => {
      let end = 0;
      for (const piece of pieces) {
        target.set(piece, end);
        end += piece.length;
      }
      return end;
    };
  }),
];

/**
 * @param prepare the part that is not measured; it returns the measured part, which returns the number of bytes that it
 * made
 */
function limit(name: string, prepare: () => () => number): Limit {
  return {
    name,
    run: async (durationMs) => {
      const make = prepare();
      const timesMs: number[] = [];
      let bytes = 0;
      const started = performance.now();
      do {
        const begun = performance.now();
        bytes = make();
        timesMs.push(performance.now() - begun);
      } while (performance.now() < started + durationMs);
      const perSecond = (timesMs.length * 1000) / (performance.now() - started);
      const times = { p50Ms: quantile(timesMs, 0.5), p99Ms: quantile(timesMs, 0.99) };
      return { ...bare, perSecond, ...times, operations: timesMs.length, note: `${bytes} bytes` };
    },
  };
}

function answer() {
  const uuids = Array.from({ length: 10_000 }, (_, n) => providerUuid(flatHost.kind, n));
  const resources = { VCPU: 1, MEMORY_MB: 256, DISK_GB: 10 };
  return {
    allocation_requests: uuids.map((uuid) => ({ allocations: { [uuid]: { resources } }, mappings: { '': [uuid] } })),
    provider_summaries: Object.fromEntries(uuids.map((uuid, n) => [uuid, summary(uuid, n)])),
  };
}

const summary = (uuid: string, n: number) => ({
  resources: {
    VCPU: { capacity: 512, used: n % 9 },
    MEMORY_MB: { capacity: 261632, used: 256 * (n % 9) },
    DISK_GB: { capacity: 8192, used: 10 * (n % 9) },
  },
  traits: flatHost.traits(n),
  parent_provider_uuid: null,
  root_provider_uuid: uuid,
});
