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
console.log(`seed ${values.seed}`);
const { requests, statuses, found, log, memory, cpuMs } = await barrage(Number(values.seed), {
  ...(values.minutes === undefined
    ? { requests: Number(values.requests) }
    : { requests: Number.POSITIVE_INFINITY, seconds: Number(values.minutes) * 60 }),
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
  `${requests} requests in ${seconds.toFixed(0)} s, ${(requests / seconds).toFixed(0)} a second, seed ${values.seed}`,
);
console.log(`CPU per request: service ${perRequest(cpuMs.server)}, client ${perRequest(cpuMs.client)}`);
console.log(
  [...statuses]
    .sort()
    .map(([status, count]) => `${status}: ${count}`)
    .join(', '),
);
process.stdout.write(log);
console.log(`${requests - found.length} passed, ${found.length} failed`);
process.exit(found.length > 0 || log !== '' ? 1 : 0);
