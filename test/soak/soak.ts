import { setTimeout as sleep } from 'node:timers/promises';
import { makeArena } from '../histories/arena.ts';
import { check } from '../histories/check.ts';
import { newest } from '../histories/chooser.ts';
import { type Connection, connectTo } from '../histories/connection.ts';
import { live, paced } from '../histories/live.ts';
import { withStandIn } from '../keystone/stand_in.ts';
import { type Random, randomFrom } from '../races/random.ts';
import type { Engine } from '../support/engines.ts';
import { succeedsWithin } from '../support/until.ts';
import { type Deployment, deploy } from './deployment.ts';
import { type Fault, faultsOf } from './faults.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { mostStartMs } from './service_process.ts';
import { wander } from './wander.ts';

/** How many arenas have clients at the same time. */
const arenasAtOnce = 6;
/** A consumer whose term has ended is removed when the faults let the service remove it. */
const patienceMs = 120_000;

/** How long a soak takes, and what it does. */
export type SoakOptions = {
  readonly seconds: number;
  readonly seed: number;
  /** Ends it early. */
  readonly stopped?: AbortSignal;
  /** Called with a line about each fault. */
  readonly log?: (line: string) => void;
};

/** Random work on the service while faults happen to it. Every history of the work is checked. */
export async function soak(engine: Engine, options: SoakOptions): Promise<Ledger> {
  return withStandIn(async (keystone) => {
    const deployment = await deploy(engine, keystone);
    try {
      return await soakDeployment(deployment, options);
    } finally {
      await deployment.close();
    }
  });
}

async function soakDeployment(
  deployment: Deployment,
  { seconds, seed, stopped, log = () => {} }: SoakOptions,
): Promise<Ledger> {
  const random = randomFrom(seed);
  const { token, logs } = deployment;
  const ledger = openLedger(logs, () => deployment.servers.flatMap(({ endings }) => endings));
  const options = { watch: ledger.watch, timeoutMs: 15_000 };
  const servers = deployment.servers.map(({ url }) => connectTo(url, { ...options, token }));
  const strangers = deployment.servers.map(({ url }) => connectTo(url, { ...options, token: 'no-such-token' }));
  const faults: Fault[] = [];
  for (const fault of faultsOf(deployment)) {
    if ('happen' in fault) faults.push(fault);
    else ledger.leftOut.push(fault);
  }
  /** How often the clock of the database began or ended to be wrong. */
  let clockChanges = 0;
  const startedMs = performance.now();
  let end = startedMs + seconds * 1000;
  /** Where the only process takes long to start again, a short soak would end without any history, or with a single fault. */
  const isTooEarly = () =>
    (ledger.histories.checked === 0 || ledger.faults.size < 2) &&
    ledger.broken.length === 0 &&
    performance.now() < end + mostStartMs;
  const isOver = () => stopped?.aborted || (performance.now() >= end && !isTooEarly());
  try {
    const work = async (choice: Random): Promise<void> => {
      while (!isOver()) {
        const arena = await makeArena(choice.pick(servers), choice);
        if (arena === undefined) {
          await sleep(100);
          continue;
        }
        const changesBefore = clockChanges;
        const life = await live(arena, servers, choice, { ...paced, patienceMs });
        const isClockSteady = clockChanges === changesBefore && clockChanges % 2 === 0;
        // A longer search would keep the clients waiting, which are in the same process.
        const found = check(life, { patienceMs, isClockSteady, mostStates: isClockSteady ? 20_000 : 2_000 });
        ledger.histories.checked += 1;
        if (isClockSteady) ledger.removedAfterMs.push(...life.removedAfterMs);
        if (life.reported.since !== undefined) ledger.histories.followed += 1;
        if (found === 'undecided') ledger.histories.undecided += 1;
        else if (found !== undefined) ledger.findings.push(found);
      }
    };
    const happen = async (choice: Random): Promise<void> => {
      for (const fault of endlessly(faults, choice)) {
        await sleep(choice.below(1500));
        if (isOver()) return;
        log(`${((performance.now() - startedMs) / 1000).toFixed(0)} s: ${fault.name}`);
        if (fault.jumpsClock) clockChanges += 1;
        const happened = await fault.happen(choice).catch((error: unknown) => {
          // What it broke may not be mended, so the soak ends here; what was seen so far is reported.
          ledger.broken.push(`the fault "${fault.name}" failed: ${error}`);
          end = Math.min(end, performance.now());
          return false;
        });
        if (fault.jumpsClock) clockChanges += 1;
        if (happened === false) log('it could not happen');
        else ledger.faults.set(fault.name, (ledger.faults.get(fault.name) ?? 0) + 1);
      }
    };
    await Promise.all([
      ...Array.from({ length: arenasAtOnce }, () => work(random.fork())),
      wander(servers, random.fork(), isOver),
      wander(strangers, random.fork(), isOver),
      happen(random.fork()),
    ]);
    for (const [index, server] of servers.entries()) {
      if (!(await serves(server))) ledger.broken.push(`process ${index + 1} did not serve when all was over`);
    }
    return ledger;
  } finally {
    for (const server of [...servers, ...strangers]) server.close();
  }
}

/**
 * Whether a process serves when no fault happens any more. It may still be starting. Without an answer histories show
 * nothing, so this is what finds a process that hangs.
 */
const serves = (server: Connection): Promise<boolean> =>
  succeedsWithin(mostStartMs, async () => {
    const reply = await server.send({ method: 'GET', path: '/resource_providers?name=none', microversion: newest });
    return reply?.status === 200;
  });

/** All faults in a random order, again and again, so that a short soak has as many kinds as it can. */
function* endlessly(faults: readonly Fault[], random: Random): Generator<Fault> {
  for (;;) {
    const left = [...faults];
    while (left.length > 0) yield* left.splice(random.below(left.length), 1);
  }
}
