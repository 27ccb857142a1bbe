import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkIntegrity } from '../races/consistency.ts';
import { isSuccess, type Send, sendingTo } from './client.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { faults } from './faults.ts';
import { type Follower, startFollower } from './follower.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { type Load, startLoad } from './load.ts';

/*
 * Breaks every part of a real cluster under load, one after the other, and checks after each fault that nothing
 * acknowledged is lost, that nothing is over-allocated, and that the cluster serves again without any help. The
 * arguments are parts of the names of faults; without any, all of them.
 */

/** How soon claims must be acknowledged after a new primary was promoted. */
const wantedMs = 3_000;

type Row = Readonly<Record<string, string | number>>;

/** Notes when another node becomes the primary, by `Date.now()`. */
function watchPromotions(cluster: Cluster): { readonly promotedMs: number[] } {
  const promotedMs: number[] = [];
  const watch = async (): Promise<void> => {
    let last = await cluster.primary();
    for (;;) {
      const primary = await cluster.primary();
      if (primary !== undefined && primary !== last) {
        promotedMs.push(Date.now());
        last = primary;
      }
      await sleep(50);
    }
  };
  void watch();
  return { promotedMs };
}

async function succeed(send: Send, ...request: Parameters<Send>): Promise<void> {
  const reply = await send(...request);
  if (!isSuccess(reply)) throw new Error(`${request.slice(0, 2).join(' ')}: ${reply.status} ${reply.text}`);
}

async function makeHost(send: Send, total: number, trait?: string): Promise<string> {
  const uuid = randomUUID();
  await succeed(send, 'POST', '/resource_providers', { uuid, name: uuid });
  const stock = { resource_provider_generation: 0, inventories: { VCPU: { total } } };
  await succeed(send, 'PUT', `/resource_providers/${uuid}/inventories`, stock);
  if (trait !== undefined) {
    const traits = { resource_provider_generation: 1, traits: [trait] };
    await succeed(send, 'PUT', `/resource_providers/${uuid}/traits`, traits);
  }
  return uuid;
}

/** The longest time without an acknowledged claim. */
function longestGapMs(acknowledgedMs: readonly number[], fromMs: number, toMs: number): number {
  const times = [fromMs, ...acknowledgedMs.filter((ms) => ms >= fromMs && ms <= toMs), toMs];
  return Math.max(...times.map((ms, place) => ms - (times[place - 1] ?? fromMs)));
}

type Results = { readonly rows: Row[]; passed: number; failed: number };

async function causeOne(
  { name, cause }: (typeof faults)[number],
  parts: {
    readonly cluster: Cluster;
    readonly load: Load;
    readonly ledger: Ledger;
    readonly follower: Follower;
    readonly promotedMs: readonly number[];
  },
  results: Results,
): Promise<void> {
  const { cluster, load, ledger, follower, promotedMs } = parts;
  const check = (what: string, complaints: readonly string[]): string => {
    if (complaints.length === 0) results.passed += 1;
    else results.failed += 1;
    for (const complaint of complaints.slice(0, 5)) console.log(`FAILED ${name}: ${what}: ${complaint}`);
    return complaints.length === 0 ? 'yes' : `NO (${complaints.length})`;
  };
  const before = { claims: load.acknowledgedMs.length, statuses: new Map(load.statuses) };
  const restarts = follower.restarts;
  const beganMs = Date.now();
  load.resume();
  await sleep(2_000);
  await cause(cluster);
  const whole = await cluster.untilWhole().then(
    () => [],
    (error) => [String(error)],
  );
  await sleep(3_000);
  await load.pause();
  const endedMs = Date.now();
  await sleep(8_000); // terms that were given last are over, and removed
  const promotion = promotedMs.filter((ms) => ms >= beganMs).at(-1);
  const first = promotion === undefined ? undefined : load.acknowledgedMs.find((ms) => ms >= promotion);
  const resumedMs = promotion === undefined ? undefined : (first ?? endedMs) - promotion;
  const lost = await ledger.complaints(cluster.query);
  const over = await checkIntegrity(cluster.query).then(
    () => [],
    (error) => [String(error.message)],
  );
  const untold = [...load.touched]
    .filter(([host, ms]) => follower.toldMs(host) < ms)
    .map(([host]) => `${host} was not told`);
  const answered = [...load.statuses].map(
    ([status, count]) => [status, count - (before.statuses.get(status) ?? 0)] as const,
  );
  const refused = answered.filter(([status, count]) => (status === 0 || status >= 500) && count > 0);
  const late = resumedMs !== undefined && resumedMs > wantedMs ? [`after ${resumedMs} ms`] : [];
  results.rows.push({
    fault: name,
    claims: load.acknowledgedMs.length - before.claims,
    'no claim for, s': (longestGapMs(load.acknowledgedMs, beganMs, endedMs) / 1000).toFixed(1),
    'promotion to claim, s': resumedMs === undefined ? '-' : (resumedMs / 1000).toFixed(1),
    refusals: refused.map(([status, count]) => `${status || 'broken'}: ${count}`).join(', ') || '-',
    'nothing lost': check('nothing acknowledged is lost', lost),
    'nothing over': check('nothing is over-allocated', over),
    'own writes': check('each client reads what it wrote, and no answer is wrong', load.complaints.splice(0)),
    'followers told': `${check('followers are told', untold)}${follower.restarts > restarts ? ', anew' : ''}`,
    whole: check('all parts serve again', whole),
    'in 3 s': check('claims are acknowledged within 3 s of the promotion', late),
  });
  console.log(JSON.stringify(results.rows.at(-1)));
}

const wanted = process.argv.slice(2);
const results: Results = { rows: [], passed: 0, failed: 0 };
const cluster = await startCluster();
console.log(`The cluster serves at ${cluster.url}; logs are in ${cluster.folder}`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void cluster.stop().finally(() => process.exit(1)));
}
try {
  const send = sendingTo(cluster.url);
  await succeed(send, 'PUT', '/traits/CUSTOM_STOCK');
  const sizes = [4, 8, 8, 16, ...Array.from({ length: 16 }, () => 200)];
  const hosts: string[] = [];
  for (const size of sizes) hosts.push(await makeHost(send, size));
  const stocks = [await makeHost(send, 1_000, 'CUSTOM_STOCK'), await makeHost(send, 1_000, 'CUSTOM_STOCK')];
  const ledger = openLedger();
  for (const host of stocks) ledger.stocked(host, 1_000, true);
  const load = startLoad(send, ledger, hosts, stocks);
  const follower = startFollower(send);
  const { promotedMs } = watchPromotions(cluster);
  for (const fault of faults) {
    if (wanted.length > 0 && !wanted.some((part) => fault.name.includes(part))) continue;
    await causeOne(fault, { cluster, load, ledger, follower, promotedMs }, results);
  }
} catch (error) {
  results.failed += 1;
  console.log(`FAILED ${error instanceof Error ? error.stack : error}`);
}
console.table(results.rows);
await cluster.stop(results.failed > 0);
if (results.failed > 0) console.log(`The logs are in ${cluster.folder}`);
console.log(`${results.passed} passed, ${results.failed} failed`);
process.exit(results.failed === 0 ? 0 : 1);
