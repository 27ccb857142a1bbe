import { Command, Option } from 'commander';
import { anySeed, integer, positive } from '../support/command_line.ts';
import { type Engine, engines } from '../support/engines.ts';
import { soak } from './soak.ts';

/*
 * Random work under random faults, and what it lost: `make soak HOURS=0.17`. The last line is `N passed, N failed`: histories
 * that were explained, and all that is wrong. SIGINT and SIGTERM end it early, with its ledger.
 */

const {
  hours,
  seed = anySeed(),
  engine,
} = new Command('soak')
  .description('Random work under random faults, of which every answer is checked.')
  .option('--hours <number>', 'how long; without --engine the time is divided among both databases', positive, 1)
  .option('--seed <integer>', 'makes the same choices as an earlier run (default: a new one)', integer)
  .addOption(new Option('--engine <name>', 'on this database only').choices(engines))
  .parse()
  .opts<{ hours: number; seed?: number; engine?: Engine }>();
const wanted = engine === undefined ? engines : [engine];
const stopped = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => stopped.abort());
let passed = 0;
let failed = 0;
for (const each of wanted) {
  if (stopped.signal.aborted) break;
  const seconds = (hours * 3600) / wanted.length;
  console.log(`${each}: ${(seconds / 60).toFixed(1)} minutes, --seed ${seed}`);
  const ledger = await soak(each, { seconds, seed, stopped: stopped.signal, log: (line) => console.log(`  ${line}`) });
  for (const line of ledger.report()) console.log(line);
  passed += ledger.histories.checked - ledger.histories.undecided - ledger.findings.length;
  failed += ledger.complaints().length;
}
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 || passed === 0 ? 1 : 0);
