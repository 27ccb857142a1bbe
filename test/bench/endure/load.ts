import { randomUUID } from 'node:crypto';
import type { Connection } from '../connection.ts';
import { claimedResources, flatHost, project, providerUuid, user } from '../data_set.ts';
import { claimAnywhere, deleteAllocations } from '../workloads/claims.ts';
import { anyUpTo, expectStatus } from '../workloads/workload.ts';

/** How many operations of each kind were done. */
export type Done = { claims: number; releases: number; moves: number; reads: number; conflicts: number };

/** The load of a long run. */
export type EndureLoad = {
  readonly done: Readonly<Done>;
  /** One operation. Calls with the same connection come one after the other. */
  readonly operate: (connection: Connection) => Promise<void>;
};

/** So many consumers of each connection have allocations at the same time. */
const heldByEach = 50;
/** Of a hundred operations so many are reads and moves. The others are claims and releases. */
const readShare = 20;
const moveShare = 5;

/** Claims for new consumers, and releases of those with the oldest claim, with some moves and reads between them. */
export function openEndureLoad(providers: number): EndureLoad {
  const done: Done = { claims: 0, releases: 0, moves: 0, reads: 0, conflicts: 0 };
  const heldBy = new WeakMap<Connection, string[]>();

  const read = async (connection: Connection, consumer: string | undefined): Promise<void> => {
    const paths = [
      `/allocations/${consumer ?? randomUUID()}`,
      '/allocation_candidates?resources=VCPU:1,MEMORY_MB:256&limit=10',
      `/resource_providers/${providerUuid(flatHost.kind, anyUpTo(providers))}/usages`,
    ];
    expectStatus((await connection.send('GET', paths[anyUpTo(paths.length) - 1] ?? '')).status, 200);
    done.reads += 1;
  };
  const claim = async (connection: Connection, held: string[]): Promise<void> => {
    const consumer = await claimAnywhere(connection, providers);
    if (consumer === undefined) {
      done.conflicts += 1;
      return;
    }
    held.push(consumer);
    done.claims += 1;
  };
  /** To another host; the generation of a consumer that was claimed once is 1. A consumer is moved once. */
  const move = async (connection: Connection, held: string[]): Promise<void> => {
    const consumer = held.shift();
    if (consumer === undefined) return;
    const to = providerUuid(flatHost.kind, anyUpTo(providers));
    const body = {
      allocations: { [to]: { resources: claimedResources } },
      project_id: project,
      user_id: user,
      consumer_generation: 1,
      consumer_type: 'INSTANCE',
    };
    const { status } = await connection.send('PUT', `/allocations/${consumer}`, JSON.stringify(body));
    expectStatus(status, 204, 409);
    if (status === 204) done.moves += 1;
    else done.conflicts += 1;
    await deleteAllocations(connection, consumer);
    done.releases += 1;
  };
  const release = async (connection: Connection, held: string[]): Promise<void> => {
    await deleteAllocations(connection, held.shift());
    done.releases += 1;
  };

  return {
    done,
    operate: async (connection) => {
      const held = heldBy.get(connection) ?? [];
      heldBy.set(connection, held);
      const chance = anyUpTo(100);
      if (chance <= readShare) await read(connection, held[0]);
      else if (chance <= readShare + moveShare) await move(connection, held);
      else if (held.length >= heldByEach || (held.length > 0 && chance % 2 === 0)) await release(connection, held);
      else await claim(connection, held);
    },
  };
}
