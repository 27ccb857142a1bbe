import { Command, Option } from 'commander';
import { anySeed, integer, positive } from '../support/command_line.ts';
import { barrage, grown } from './barrage.ts';

/* Sends many hostile requests: node test/hostile/random_input.ts --requests 10000000 --seed 1. What they find is printed at once. */

const {
  requests: most,
  minutes,
  seed = anySeed(),
} = new Command('random_input')
  .description('Sends hostile requests to a service on the embedded database, and tells what harm they do.')
  .option('--requests <number>', 'how many', positive, 100_000)
  .addOption(new Option('--minutes <number>', 'instead: how long').argParser(positive).conflicts('requests'))
  .option('--seed <integer>', 'makes the same choices as an earlier run (default: a new one)', integer)
  .parse()
  .opts<{ requests: number; minutes?: number; seed?: number }>();
const length = minutes === undefined ? { requests: most } : { requests: Infinity, seconds: minutes * 60 };
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
const more = grown(memory);
for (const { requests, heap, external } of more)
  console.log(`after ${requests} requests the memory had grown: heap ${heap}, external ${external} MiB`);
const failed = found.length + (log === '' ? 0 : 1) + (more.length > 0 ? 1 : 0);
console.log(`${requests - found.length} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
