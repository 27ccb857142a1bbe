import { parseArgs } from 'node:util';
import { type Engine, engines } from '../engines.ts';
import { soak } from './soak.ts';

/*
 * Random work under random faults, and what it lost: `make soak HOURS=0.17`. Without --engine the time is divided among both
 * databases. The last line is `N passed, N failed`: histories that were explained, and all that is wrong.
 */

const { values } = parseArgs({
  options: { hours: { type: 'string', default: '1' }, seed: { type: 'string' }, engine: { type: 'string' } },
});
const hours = Number(values.hours);
const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
const wanted = engines.filter((engine) => values.engine === undefined || values.engine === engine);
if (!(hours > 0) || !Number.isSafeInteger(seed) || wanted.length === 0) {
  console.error(`Usage: --hours N --seed N --engine ${engines.join('|')}`);
  process.exit(2);
}
let passed = 0;
let failed = 0;
for (const engine of wanted satisfies readonly Engine[]) {
  console.log(`${engine}: ${((hours * 60) / wanted.length).toFixed(1)} minutes, --seed ${seed}`);
  const ledger = await soak(engine, (hours * 3600) / wanted.length, seed, (line) => console.log(`  ${line}`));
  for (const line of ledger.report()) console.log(line);
  passed += ledger.histories.checked - ledger.histories.undecided - ledger.findings.length;
  failed += ledger.complaints().length;
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
