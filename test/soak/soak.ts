import { setTimeout as sleep } from 'node:timers/promises';
import type { Engine } from '../engines.ts';
import { makeArena } from '../histories/arena.ts';
import { check } from '../histories/check.ts';
import { connectTo } from '../histories/connection.ts';
import { live, paced } from '../histories/live.ts';
import { type Random, randomFrom } from '../races/random.ts';
import { deploy } from './deployment.ts';
import { type Fault, faultsOf } from './faults.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { wander } from './wander.ts';

/** How many arenas have clients at the same time. */
const arenasAtOnce = 6;
/** A consumer whose term has ended is removed when the faults let the service remove it. */
const patienceMs = 120_000;

/**
 * Random work on the service while faults happen to it. Every history of the work is checked.
 *
 * @param log called with a line about each fault
 */
export async function soak(
  engine: Engine,
  seconds: number,
  seed: number,
  log: (line: string) => void = () => {},
): Promise<Ledger> {
  const random = randomFrom(seed);
  const ledger = openLedger();
  const deployment = await deploy(engine);
  const servers = deployment.servers.map(({ url }) => connectTo(url, { watch: ledger.watch, timeoutMs: 15_000 }));
  const end = performance.now() + seconds * 1000;
  const isOver = () => performance.now() >= end;
  try {
    const work = async (choice: Random): Promise<void> => {
      while (!isOver()) {
        const arena = await makeArena(choice.pick(servers), choice);
        if (arena === undefined) {
          await sleep(100);
          continue;
        }
        const life = await live(arena, servers, choice, { ...paced, patienceMs });
        const found = check(life, { patienceMs, isClockSteady: true });
        ledger.histories.checked += 1;
        ledger.removedAfterMs.push(...life.removedAfterMs);
        if (found === 'undecided') ledger.histories.undecided += 1;
        else if (found !== undefined) ledger.findings.push(found);
      }
    };
    const happen = async (choice: Random): Promise<void> => {
      for (const fault of endlessly(faultsOf(deployment), choice)) {
        await sleep(choice.below(1500));
        if (isOver()) return;
        log(`${fault.name}`);
        ledger.faults.set(fault.name, (ledger.faults.get(fault.name) ?? 0) + 1);
        await fault.happen(choice);
      }
    };
    await Promise.all([
      ...Array.from({ length: arenasAtOnce }, () => work(random.fork())),
      wander(servers, random.fork(), isOver),
      happen(random.fork()),
    ]);
    for (const server of deployment.servers) ledger.readLog(server.log());
    return ledger;
  } finally {
    for (const server of servers) server.close();
    await deployment.close();
  }
}

/** All faults in a random order, again and again, so that a short soak has as many kinds as it can. */
function* endlessly(faults: readonly Fault[], random: Random): Generator<Fault> {
  for (;;) {
    const left = [...faults];
    while (left.length > 0) yield* left.splice(random.below(left.length), 1);
  }
}
