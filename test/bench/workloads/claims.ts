import { randomUUID } from 'node:crypto';
import type { Connection } from '../connection.ts';
import { claimedResources, flatHost, project, providerUuid, user } from '../data_set.ts';
import { type Concurrency, inName, measure, perform } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';
import { anyUpTo, expectStatus, type Workload } from './workload.ts';

/** W4: claims of new consumers on any host, and their deletion. */
export const claims: readonly Workload[] = [
  ...[1, 8, 32, 128].map((concurrency) => claiming(concurrency, concurrency > 1)),
  ...[8, 32].map((concurrency) => releasing(concurrency)),
];

/** The body of a claim of a new consumer. */
export function claimBody(allocations: unknown, projectId: string = project): string {
  return JSON.stringify({
    allocations,
    project_id: projectId,
    user_id: user,
    consumer_generation: null,
    consumer_type: 'INSTANCE',
  });
}

/** The body of `PUT /allocations` for a claim on a single provider. */
export const claimOn = (provider: string, projectId?: string): string =>
  claimBody({ [provider]: { resources: claimedResources } }, projectId);

/** Deletes the allocations of the consumers, without measuring it. */
export const release = (server: MeasuredServer, consumers: readonly string[]): Promise<void> =>
  perform(server, { most: consumers.length }, async (connection, call) =>
    deleteAllocations(connection, consumers[call]),
  );

export async function deleteAllocations(connection: Connection, consumer: string | undefined): Promise<void> {
  expectStatus((await connection.send('DELETE', `/allocations/${consumer}`)).status, 204);
}

/** Claims some of any host for a new consumer. @returns the consumer; undefined if the claim lost a race */
export async function claimAnywhere(connection: Connection, providers: number): Promise<string | undefined> {
  const consumer = randomUUID();
  const body = claimOn(providerUuid(flatHost.kind, anyUpTo(providers)));
  const { status } = await connection.send('PUT', `/allocations/${consumer}`, body);
  expectStatus(status, 204, 409);
  return status === 204 ? consumer : undefined;
}

/** Claims on any host. @param grows whether they are measured at every size */
export function claiming(concurrency: Concurrency, grows = true): Workload {
  return {
    name: `W4 claims, ${inName(concurrency)}`,
    dataSet: 'flat',
    grows,
    run: async (server, { durationMs, providers }) => {
      const consumers: string[] = [];
      let conflicts = 0;
      const measured = await measure(server, concurrency, { durationMs }, async (connection) => {
        const consumer = await claimAnywhere(connection, providers);
        if (consumer === undefined) conflicts += 1;
        else consumers.push(consumer);
      });
      await release(server, consumers);
      return { ...measured, ...(conflicts > 0 ? { note: `${conflicts} answers 409` } : {}) };
    },
  };
}

function releasing(concurrency: number): Workload {
  return {
    name: `W4 deleting allocations, c${concurrency}`,
    dataSet: 'flat',
    run: async (server, { durationMs, providers }) => {
      const consumers: string[] = [];
      await perform(server, { durationMs }, async (connection) => {
        const consumer = await claimAnywhere(connection, providers);
        if (consumer !== undefined) consumers.push(consumer);
      });
      const measured = await measure(
        server,
        concurrency,
        { durationMs, most: consumers.length, coldStart: true },
        (connection) => deleteAllocations(connection, consumers.pop()),
      );
      await release(server, consumers);
      return measured;
    },
  };
}
