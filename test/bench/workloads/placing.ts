import { randomUUID } from 'node:crypto';
import { claimedResources, project, user } from '../data_set.ts';
import { measure } from '../measure.ts';
import { release } from './claims.ts';
import { expectStatus, type Workload } from './workload.ts';

/** The version that introduced claims by query. */
const version = '2.4';

const resources = `resources=${Object.entries(claimedResources)
  .map(([name, amount]) => `${name}:${amount}`)
  .join(',')}`;

/** On 4 of 100 hosts. */
const required = 'required=CUSTOM_BENCH_MAINT,CUSTOM_BENCH_GOLD';

const inGang = 100;

/** W9: consumers that are placed by query, one by one and by the hundred. A server that does not know it is not measured. */
export const placing: readonly Workload[] = [
  ...[1, 8, 32].map((concurrency) => placingOne('anywhere', resources, concurrency)),
  placingOne('on 4 % of the hosts', `${resources}&${required}`, 8),
  ...[1, 8, 32].map((concurrency) => placingOne('where least is free', `${resources}&order=free:VCPU`, concurrency)),
  placingOne('where most is free', `${resources}&order=-free:VCPU`, 8),
  ...[2, 8].flatMap((concurrency) => [
    placingGang('anywhere', resources, concurrency),
    placingGang('where least is free', `${resources}&order=free:VCPU`, concurrency),
  ]),
];

/** The body of a claim by query of a new consumer. */
export function placingBody(candidates: string): object {
  const owner = { project_id: project, user_id: user };
  return { candidates, ...owner, consumer_generation: null, consumer_type: 'INSTANCE' };
}

function placingOne(where: string, query: string, concurrency: number): Workload {
  const text = JSON.stringify(placingBody(query));
  return {
    name: `W9 placing ${where}, c${concurrency}`,
    dataSet: 'flat',
    version,
    grows: concurrency > 1,
    run: async (server, { durationMs }) => {
      const consumers: string[] = [];
      const measured = await measure(server, concurrency, { durationMs }, async (connection) => {
        const consumer = randomUUID();
        const { status } = await connection.send('PUT', `/allocations/${consumer}`, text, false, version);
        expectStatus(status, 200);
        consumers.push(consumer);
      });
      await release(server, consumers);
      return measured;
    },
  };
}

/** One operation is a POST of 100 consumers. */
function placingGang(where: string, query: string, concurrency: number): Workload {
  return {
    name: `W9 placing ${inGang} in one request ${where}, c${concurrency}`,
    dataSet: 'flat',
    version,
    grows: true,
    run: async (server, { durationMs }) => {
      const consumers: string[] = [];
      const measured = await measure(server, concurrency, { durationMs }, async (connection) => {
        const uuids = Array.from({ length: inGang }, () => randomUUID());
        const gang = JSON.stringify(Object.fromEntries(uuids.map((uuid) => [uuid, placingBody(query)])));
        const { status } = await connection.send('POST', '/allocations', gang, false, version);
        expectStatus(status, 200);
        consumers.push(...uuids);
      });
      await release(server, consumers);
      return measured;
    },
  };
}
