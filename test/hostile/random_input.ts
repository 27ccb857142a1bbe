import { parseArgs } from 'node:util';
import { barrage } from './barrage.ts';

/* Sends many hostile requests: node test/hostile/random_input.ts --requests 100000 --seed 1. The end says what they found. */

const { values } = parseArgs({
  options: { requests: { type: 'string', default: '100000' }, seed: { type: 'string', default: '1' } },
});
const started = performance.now();
const { requests, statuses, found, log } = await barrage(
  Number(values.requests),
  Number(values.seed),
  20_000,
  ({ requests, heap, external, resident }) =>
    console.log(`after ${requests} requests: heap ${heap}, external ${external}, resident ${resident} MiB`),
);
console.log(`${requests} requests in ${((performance.now() - started) / 1000).toFixed(0)} s, seed ${values.seed}`);
console.log([...statuses].map(([status, count]) => `${status}: ${count}`).join(', '));
for (const { what, bytes } of found) console.log(`${what}: ${JSON.stringify(bytes.toString('latin1'))}`);
process.stdout.write(log);
console.log(`${requests - found.length} passed, ${found.length} failed`);
process.exit(found.length > 0 ? 1 : 0);
