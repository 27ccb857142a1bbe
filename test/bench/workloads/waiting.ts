import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { closedLoop } from '../closed_loop.ts';
import type { Connection } from '../connection.ts';
import { flatHost, providerUuid } from '../data_set.ts';
import { figuresOf, type Measurement, measure, perform, withConnection, withConnections } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { residentMb } from '../processes.ts';
import { claimAnywhere, claimBody, deleteAllocations, release } from './claims.ts';
import { createProvider } from './creating.ts';
import { placingBody } from './placing.ts';
import { type Conditions, expectStatus, type Workload } from './workload.ts';

/** The version that introduced claims that wait. */
const version = '2.8';

/** Longer than any measurement. */
const waitSeconds = 600;

/** Only the hosts that these workloads make have it. */
const device = 'PGPU';

const workload = (name: string, run: Workload['run']): Workload => ({
  name: `W12 ${name}`,
  dataSet: 'flat',
  version,
  run,
});

/** W12: claims that wait for their turn. */
export const waiting: readonly Workload[] = [
  claimsAndReleases('claims and releases, c32', 0),
  claimsAndReleases('claims and releases beside 5000 that wait, c32', 5000),
  jobs('120 jobs for 9 devices, each holds for 50 ms'),
  jobs('120 jobs in a line for 9 devices, each holds for 50 ms', 'gpu'),
  workload('a line for one device, c16', measureLine),
  workload('from a release until the next claim is placed', measureWakeUps),
];

/** Waits until there is room, and takes it. */
async function place(connection: Connection, consumer: string, resources: string, line?: string): Promise<void> {
  const body = JSON.stringify({ ...placingBody(`resources=${resources}`), ...(line === undefined ? {} : { line }) });
  const { status } = await connection.send('PUT', `/allocations/${consumer}`, body, false, version);
  expectStatus(status, 200);
}

/**
 * Each operation is a claim and its release. The claims that wait have 50 different queries, for almost a whole host, of which each host has a
 * part in use: so each release makes room, but not enough.
 */
function claimsAndReleases(name: string, mostWaiting: number): Workload {
  return workload(name, async (server, { durationMs, providers }) => {
    const fillers = Array.from({ length: providers }, () => randomUUID());
    await perform(server, { most: providers }, async (connection, call) => {
      const body = claimBody({ [providerUuid(flatHost.kind, call + 1)]: { resources: { VCPU: 60 } } });
      expectStatus((await connection.send('PUT', `/allocations/${fillers[call]}`, body)).status, 204);
    });
    const count = Math.min(mostWaiting, 5 * durationMs);
    const emptyMb = residentMb(server.pids());
    const measured = await beside(server, count, async () => {
      const waitingMb = residentMb(server.pids());
      const figures = await measure(server, 32, { durationMs }, async (connection) => {
        const consumer = await claimAnywhere(connection, providers);
        if (consumer !== undefined) await deleteAllocations(connection, consumer);
      });
      const kb = ((waitingMb - emptyMb) * 1000) / count;
      return count === 0 ? figures : { ...figures, note: `${kb.toFixed(1)} kB of memory for each that waits` };
    });
    await release(server, fillers);
    return measured;
  });
}

/** Calls back while so many claims wait. */
const beside = <T>(server: MeasuredServer, count: number, use: () => Promise<T>): Promise<T> =>
  withConnection(server, async (probe) => {
    const untilWaiting = async (wanted: number): Promise<void> => {
      const listed = async (): Promise<number> => {
        for (let count = 0, marker = 0; ; ) {
          const answer = await probe.send('GET', `/waiting?limit=1000&marker=${marker}`, '', true, version);
          const { waiting: page } = JSON.parse(answer.body);
          count += page.length;
          if (page.length < 1000) return count;
          marker = page.at(-1).number;
        }
      };
      while ((await listed()) !== wanted) await sleep(100);
    };
    await untilWaiting(0);
    const result = await withConnections(
      server,
      count,
      async (connections) => {
        for (const [index, connection] of connections.entries()) {
          // It is not answered: the connection is closed first.
          place(connection, randomUUID(), `VCPU:${512 - (index % 50)}`).catch(() => {});
        }
        await untilWaiting(count);
        return use();
      },
      { waitSeconds },
    );
    await untilWaiting(0);
    return result;
  });

/** Calls back with a host that has so many devices. */
function withDevices<T>(server: MeasuredServer, total: number, use: () => Promise<T>): Promise<T> {
  const host = randomUUID();
  return withConnection(server, async (connection) => {
    await createProvider(connection, host, { [device]: { total } });
    const result = await use();
    expectStatus((await connection.send('DELETE', `/resource_providers/${host}`)).status, 204);
    return result;
  });
}

/** Each operation takes a device, waiting for it, holds it and releases it. */
function jobs(name: string, line?: string): Workload {
  const [devices, holdMs] = [9, 50];
  return workload(name, (server, { durationMs }) =>
    withDevices(server, devices, () =>
      withConnections(
        server,
        Math.min(120, 10 + durationMs / 5),
        async (connections) => {
          let idle = 0;
          let heldMs = 0;
          const measured = await figuresOf(server, async () => {
            const timing = await closedLoop(connections, { durationMs }, async (connection) => {
              const consumer = randomUUID();
              await place(connection, consumer, `${device}:1`, line);
              const placedAtMs = performance.now();
              await sleep(holdMs);
              await deleteAllocations(connection, consumer);
              heldMs += performance.now() - placedAtMs;
            });
            idle = 1 - heldMs / (devices * timing.elapsedMs);
            return timing;
          });
          return { ...measured, note: `the devices were free for ${(100 * idle).toFixed(1)} % of the time` };
        },
        { waitSeconds },
      ),
    ),
  );
}

/** Each claim is released at once; the times are those from a release until the next claim of the line is placed. */
function measureLine(server: MeasuredServer, { durationMs }: Conditions): Promise<Measurement> {
  return withDevices(server, 1, () =>
    withConnections(
      server,
      16,
      (connections) =>
        figuresOf(server, async () => {
          const timesMs: number[] = [];
          let releasedAtMs: number | undefined;
          const { elapsedMs } = await closedLoop(connections, { durationMs }, async (connection) => {
            const consumer = randomUUID();
            await place(connection, consumer, `${device}:1`, 'gpu');
            if (releasedAtMs !== undefined) timesMs.push(performance.now() - releasedAtMs);
            releasedAtMs = performance.now();
            await deleteAllocations(connection, consumer);
          });
          return { timesMs, elapsedMs };
        }),
      { waitSeconds },
    ),
  );
}

/** One claim waits at a time, at the first process; the last process releases what it waits for. */
function measureWakeUps(server: MeasuredServer, { durationMs }: Conditions): Promise<Measurement> {
  return withDevices(server, 1, () =>
    withConnections(
      server,
      Math.max(2, server.urls().length),
      async (connections) => {
        const [first, last] = [connections[0], connections.at(-1)];
        if (first === undefined || last === undefined) throw new Error('There is no connection.');
        let holder = randomUUID();
        await place(first, holder, `${device}:1`);
        const measured = await figuresOf(server, async () => {
          const timesMs: number[] = [];
          const startedMs = performance.now();
          while (timesMs.length === 0 || performance.now() < startedMs + durationMs) {
            const next = randomUUID();
            const placed = place(first, next, `${device}:1`);
            // At any time between two rounds of checks of the process.
            await sleep(30 + Math.random() * 100);
            const releasingAtMs = performance.now();
            await deleteAllocations(last, holder);
            await placed;
            timesMs.push(performance.now() - releasingAtMs);
            holder = next;
          }
          return { timesMs, elapsedMs: performance.now() - startedMs };
        });
        await deleteAllocations(first, holder);
        return measured;
      },
      { waitSeconds },
    ),
  );
}
