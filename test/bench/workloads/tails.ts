import { once } from 'node:events';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { execute } from '../../support/postgresql.ts';
import { closedLoop, quantile, type Timing } from '../closed_loop.ts';
import type { Connection } from '../connection.ts';
import { flatHost, providerUuid } from '../data_set.ts';
import { insertTrees } from '../load_by_sql.ts';
import { figuresOf, type Operation, withConnections } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { queryOn } from '../own_server.ts';
import { claimAnywhere, release } from './claims.ts';
import { giveTerms, knowsTerms, removeConsumersWithTerms } from './ending.ts';
import { anyUsedHost } from './reads.ts';
import type { LongRequests } from './tails_long.ts';
import { type Conditions, expectStatus, type Workload } from './workload.ts';

/** The version that the explanations need. */
const version = '2.3';

/** The work at the same time as the claims and the reads. */
type Company = {
  /** Four ask for all candidates, and two for explanations, again and again. */
  readonly longRequests?: true;
  /** Another program loads hosts, 200 in a transaction, and terms end. Both are done by SQL. */
  readonly otherWrites?: true;
};

/** W15: claims of 16 clients and reads of 8, beside long requests of other clients. The figures are those of the claims. */
export const tails: readonly Workload[] = [
  tail('alone', {}),
  tail('beside 4 for all candidates and 2 for explanations', { longRequests: true }),
  tail('beside these, a load of hosts, and ends of terms', { longRequests: true, otherWrites: true }),
];

function tail(name: string, company: Company): Workload {
  return {
    name: `W15 claims of 16 and reads of 8, ${name}`,
    dataSet: 'flat',
    version,
    grows: true,
    largest: 10_000,
    run: async (server, conditions) => {
      const url = server.databaseUrl();
      if (company.otherWrites && (url === undefined || !(await knowsTerms(url)))) return undefined;
      return withConnections(server, 24, async (connections) => {
        const claiming = connections.slice(0, 16);
        const reading = connections.slice(16);
        const writesUrl = company.otherWrites ? url : undefined;
        return measureTails(server, conditions, {
          claiming,
          reading,
          hasLong: company.longRequests === true,
          writesUrl,
        });
      });
    },
  };
}

type Callers = {
  readonly claiming: readonly Connection[];
  readonly reading: readonly Connection[];
  readonly hasLong: boolean;
  /** The database that other programs write to. */
  readonly writesUrl: string | undefined;
};

async function measureTails(
  server: MeasuredServer,
  { durationMs, providers }: Conditions,
  { claiming, reading, hasLong, writesUrl }: Callers,
) {
  const consumers: string[] = [];
  const claim: Operation = async (connection) => {
    const consumer = await claimAnywhere(connection, providers);
    if (consumer !== undefined) consumers.push(consumer);
  };
  const read: Operation = async ({ send }) => {
    const path = `/resource_providers/${providerUuid(flatHost.kind, anyUsedHost(providers))}/usages`;
    expectStatus((await send('GET', path)).status, 200);
  };
  const warmUp = { durationMs: durationMs / 4 };
  await Promise.all([closedLoop(claiming, warmUp, claim), closedLoop(reading, warmUp, read)]);
  let reads: Timing | undefined;
  let longPerSecond = 0;
  let loaded = 0;
  const whole = { durationMs };
  if (writesUrl !== undefined) await giveTerms(writesUrl, { seconds: durationMs / 1000, begin: '0 s', providers });
  const long = hasLong ? await openLongRequests({ urls: server.urls(), version, durationMs }) : undefined;
  const measured = await figuresOf(server, async () => {
    const [claims, ...others] = await Promise.all([
      closedLoop(claiming, whole, claim),
      closedLoop(reading, whole, read),
      long?.ask() ?? 0,
      writesUrl === undefined ? 0 : loadFor(durationMs, writesUrl),
    ]);
    [reads, longPerSecond, loaded] = others;
    return claims;
  }).finally(() => long?.close());
  if (writesUrl !== undefined) {
    await removeConsumersWithTerms(writesUrl);
    await removeLoaded(writesUrl);
  }
  await release(server, consumers);
  const { timesMs = [], elapsedMs = 1 } = reads ?? {};
  const perSecond = ((timesMs.length * 1000) / elapsedMs).toFixed(0);
  const ofLong = hasLong ? `; ${longPerSecond.toFixed(0)} long answers/s` : '';
  const note = `reads ${perSecond}/s, p99 ${quantile(timesMs, 0.99).toFixed(1)} ms${ofLong}`;
  return { ...measured, note: writesUrl === undefined ? note : `${note}; ${loaded} hosts loaded` };
}

/** Six clients that ask for long answers, in a thread of its own: to read these takes time, and they are other clients. */
type LongCallers = {
  /** Asks as long as the requests say. @returns how many answers came in a second */
  ask(): Promise<number>;
  close(): Promise<unknown>;
};

/** Resolves when the thread is connected. */
async function openLongRequests(requests: LongRequests): Promise<LongCallers> {
  const worker = new Worker(path.join(import.meta.dirname, 'tails_long.ts'), { workerData: requests });
  await once(worker, 'message');
  return {
    ask: async () => {
      worker.postMessage('ask');
      const [perSecond] = await once(worker, 'message');
      return perSecond;
    },
    close: () => worker.terminate(),
  };
}

const hostsInPiece = 200;

/** Loads hosts without allocations, in pieces. @returns how many */
async function loadFor(durationMs: number, url: string): Promise<number> {
  const query = queryOn(url);
  let pieces = 0;
  for (const endMs = performance.now() + durationMs; performance.now() < endMs; pieces += 1) {
    const kind = `loaded-${pieces}`;
    await insertTrees(query, [{ ...flatHost, kind, populated: false }], hostsInPiece);
  }
  return pieces * hostsInPiece;
}

/** Removes the hosts that were loaded, by SQL. */
async function removeLoaded(url: string): Promise<void> {
  const ids = `select id from resource_providers where name like 'loaded-%'`;
  await execute(
    url,
    `begin;
    select set_config('placement.etags', 'providers', true);
    delete from inventories where resource_provider_id in (${ids});
    delete from resource_provider_traits where resource_provider_id in (${ids});
    delete from resource_providers where name like 'loaded-%';
    commit`,
  );
}
