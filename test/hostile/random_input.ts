import { parseArgs } from 'node:util';
import { barrage } from './barrage.ts';

/*
 * Sends many hostile requests: node test/hostile/random_input.ts --requests 10000000 --seed 1, or --minutes 2. What they find is printed at
 * once.
 */

const { values } = parseArgs({
  options: {
    requests: { type: 'string', default: '100000' },
    minutes: { type: 'string' },
    seed: { type: 'string', default: `${Math.floor(Math.random() * 2 ** 31)}` },
  },
});
const seed = Number(values.seed);
const length =
  values.minutes === undefined
    ? { requests: Number(values.requests) }
    : { requests: Number.POSITIVE_INFINITY, seconds: Number(values.minutes) * 60 };
// Without this check a misspelled number would be a run without requests, which finds nothing.
if (!Number.isSafeInteger(seed) || !(length.requests > 0) || !((length.seconds ?? 1) > 0)) {
  console.error('Usage: --requests N or --minutes N, --seed N');
  process.exit(2);
}
console.log(`seed ${seed}`);
const { requests, statuses, found, log, memory, cpuMs } = await barrage(seed, {
  ...length,
  measureEvery: 50_000,
  onFound: ({ what, bytes }) => console.log(`${what}: ${JSON.stringify(bytes.toString('latin1'))}`),
  onMeasured: ({ requests, seconds, heap, external, resident }) =>
    console.log(
      `${seconds.toFixed(0)} s, ${requests} requests: heap ${heap}, external ${external}, resident ${resident} MiB`,
    ),
});
const seconds = memory.at(-1)?.seconds ?? 0;
const perRequest = (ms: number): string => `${((ms * 1000) / requests).toFixed(0)} us`;
console.log(
  `${requests} requests in ${seconds.toFixed(0)} s, ${(requests / seconds).toFixed(0)} a second, seed ${seed}`,
);
console.log(`CPU per request: service ${perRequest(cpuMs.server)}, client ${perRequest(cpuMs.client)}`);
console.log(
  [...statuses]
    .sort()
    .map(([status, count]) => `${status}: ${count}`)
    .join(', '),
);
process.stdout.write(log);
const failed = found.length + (log === '' ? 0 : 1);
console.log(`${requests - found.length} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
