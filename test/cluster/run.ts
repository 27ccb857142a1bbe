import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { checkIntegrity } from '../races/consistency.ts';
import { at } from '../support/requests.ts';
import { isSuccess, type Send, sendingTo } from './client.ts';
import { type Cluster, startCluster } from './cluster.ts';
import { type Fault, faults } from './faults.ts';
import { type Follower, startFollower } from './follower.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { type Load, limitedProject, startLoad } from './load.ts';
import { type Watched, watchDatabase } from './watch.ts';

/*
 * Breaks the database, etcd and the service in a real cluster under load, one after the other, and checks after each fault that nothing
 * acknowledged is lost, that nothing is over-allocated, and that the cluster serves again without any help. The
 * arguments are parts of the names of faults; without any, all of them.
 */

/** How soon after a promotion claims must be acknowledged. */
const wantedMs = 3_000;

type Row = Readonly<Record<string, string | number>>;

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
  return Math.max(...times.map((ms, index) => ms - (times[index - 1] ?? fromMs)));
}

type Results = { readonly rows: Row[]; passed: number; failed: number };

type Parts = {
  readonly cluster: Cluster;
  readonly load: Load;
  readonly ledger: Ledger;
  readonly follower: Follower;
  readonly watched: Watched;
};

/** Causes a fault under load, and waits until all parts serve again and no request is under way. */
async function underLoad({ cluster, load }: Parts, { cause }: Fault) {
  const before = { claims: load.acknowledgedMs.length, answers: load.tookMs.length, statuses: new Map(load.statuses) };
  const beganMs = Date.now();
  load.resume();
  await sleep(2_000);
  await cause(cluster);
  const whole = await complaintsOf(cluster.untilWhole());
  await sleep(3_000);
  await load.pause();
  const endedMs = Date.now();
  await sleep(8_000); // the last terms are over, and removed
  const refusals = [...load.statuses]
    .map(([status, count]) => [status, count - (before.statuses.get(status) ?? 0)] as const)
    .filter(([status, count]) => (status === 0 || status >= 500) && count > 0);
  return {
    beganMs,
    whole,
    claims: load.acknowledgedMs.length - before.claims,
    gapMs: longestGapMs(load.acknowledgedMs, beganMs, endedMs),
    slowestMs: Math.max(0, ...load.tookMs.slice(before.answers)),
    refusals: refusals.map(([status, count]) => `${status || 'broken'}: ${count}`).join(', '),
  };
}

/** Compares what the limited project has with its limit, and with what the service shows. */
async function limitComplaints({ query, url }: Cluster): Promise<readonly string[]> {
  const { name, vcpus } = limitedProject;
  const [row] =
    await query(`select count(distinct a.consumer_id) as consumers, coalesce(sum(a.used), 0) as used from allocations a
    join consumers c on c.uuid = a.consumer_id join projects p on p.id = c.project_id where p.external_id = '${name}'`);
  const { json, text } = await sendingTo(url)('GET', `/limits/${name}`);
  const shown = [at(json, 'resources', 'VCPU', 'used'), at(json, 'consumers', 'all', 'used')];
  return [
    ...(Number(row?.used) > vcpus ? [`it has ${row?.used} of ${vcpus}`] : []),
    ...(shown.join() === `${row?.used},${row?.consumers}`
      ? []
      : [`it has ${row?.used},${row?.consumers}, and the service shows ${text}`]),
  ];
}

const complaintsOf = (work: Promise<unknown>): Promise<readonly string[]> =>
  work.then(
    () => [],
    (error) => [error instanceof Error ? error.message : String(error)],
  );

async function causeOne(fault: Fault, parts: Parts, results: Results): Promise<void> {
  const { cluster, load, ledger, follower, watched } = parts;
  const check = (what: string, complaints: readonly string[]): string => {
    if (complaints.length === 0) results.passed += 1;
    else results.failed += 1;
    for (const complaint of complaints.slice(0, 5)) console.log(`FAILED ${fault.name}: ${what}: ${complaint}`);
    return complaints.length === 0 ? 'yes' : `NO (${complaints.length})`;
  };
  const starts = new Map(cluster.units.map((unit) => [unit, unit.starts]));
  const restarts = follower.restarts;
  const { beganMs, whole, claims, gapMs, slowestMs, refusals } = await underLoad(parts, fault);
  const promotions = watched.promotedMs.filter((ms) => ms >= beganMs);
  const lost = await ledger.complaints(cluster.query);
  const over = await complaintsOf(checkIntegrity(cluster.query));
  const beyond = await limitComplaints(cluster);
  const missed = [...(await follower.complaints())];
  const isAnew = follower.restarts > restarts;
  if (isAnew !== promotions.length > 0) missed.push(`410: ${isAnew}, and promotions: ${promotions.length}`);
  const ended = cluster.units.filter((unit) => unit.starts > (starts.get(unit) ?? 0)).map(({ name }) => name);
  const services = ended.filter((name) => cluster.processes.some((unit) => unit.name === name));
  const unwanted = services.filter((name) => !fault.ends?.includes(name)).map((name) => `${name} ended`);
  if (fault.promotes && promotions.length === 0) unwanted.push('no other node became the primary');
  const afterMs = (times: readonly number[]): number =>
    Math.max(...promotions.map((promotion) => (times.find((ms) => ms >= promotion) ?? Number.NaN) - promotion));
  const shownAfter = (times: readonly number[]): string =>
    promotions.length === 0 ? '-' : (afterMs(times) / 1000).toFixed(1);
  const isLate = promotions.length > 0 && !(afterMs(load.acknowledgedMs) <= wantedMs);
  results.rows.push({
    fault: fault.name,
    claims,
    'no claim for, s': (gapMs / 1000).toFixed(1),
    'promotion to commit, s': shownAfter(watched.committedMs),
    'to claim, s': shownAfter(load.acknowledgedMs),
    'slowest answer, s': (slowestMs / 1000).toFixed(1),
    refusals: refusals || '-',
    'started again': ended.join(' ') || '-',
    'nothing lost': check('nothing acknowledged is lost', lost),
    'nothing over': check('nothing is over-allocated', over),
    'within limits': check('a project has no more than its limit, and the service shows what it has', beyond),
    'own writes': check('each client reads what it wrote, and no answer is wrong', load.complaints.splice(0)),
    mirror: `${check('a mirror by GET /changes equals the providers', missed)}${isAnew ? ', anew' : ''}`,
    whole: check('all parts serve again, and only those ended that had to', [...whole, ...unwanted]),
    'in 3 s': check('claims are acknowledged within 3 s of the promotion', isLate ? ['they were not'] : []),
  });
  console.log(JSON.stringify(results.rows.at(-1)));
}

const parts = process.argv.slice(2);
const wanted = faults.filter(({ name }) => parts.length === 0 || parts.some((part) => name.includes(part)));
if (wanted.length === 0) {
  console.error(`No fault has such a name. There are: ${faults.map(({ name }) => name).join('; ')}`);
  process.exit(2);
}
const results: Results = { rows: [], passed: 0, failed: 0 };
const cluster = await startCluster();
console.log(`The cluster serves at ${cluster.url}; logs are in ${cluster.folder}`);
try {
  const send = sendingTo(cluster.url);
  await succeed(send, 'PUT', '/traits/CUSTOM_STOCK');
  const sizes = [4, 8, 8, 16, ...Array.from({ length: 16 }, () => 200)];
  const hosts: string[] = [];
  for (const size of sizes) hosts.push(await makeHost(send, size));
  const stocks = [await makeHost(send, 1_000, 'CUSTOM_STOCK'), await makeHost(send, 1_000, 'CUSTOM_STOCK')];
  const limits = { resources: { VCPU: limitedProject.vcpus }, consumers: { all: 1_000 }, generation: null };
  await succeed(send, 'PUT', `/limits/${limitedProject.name}`, limits);
  const ledger = openLedger();
  for (const host of stocks) ledger.stocked(host, 1_000, true);
  const load = startLoad(send, ledger, hosts, stocks);
  const follower = await startFollower(send);
  const watched = watchDatabase(cluster);
  for (const fault of wanted) await causeOne(fault, { cluster, load, ledger, follower, watched }, results);
} catch (error) {
  results.failed += 1;
  console.log(`FAILED ${error instanceof Error ? error.stack : error}`);
}
console.table(results.rows);
await cluster.stop(results.failed > 0);
if (results.failed > 0) console.log(`The logs are in ${cluster.folder}`);
console.log(`${results.passed} passed, ${results.failed} failed`);
process.exit(results.failed === 0 ? 0 : 1);
