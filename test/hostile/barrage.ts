import { readFileSync } from 'node:fs';
import { randomFrom } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { openCorpus } from './corpus.ts';
import { openKept } from './kept_connection.ts';
import { openSlow } from './slow_senders.ts';
import { judge, makeTrain, type Outcome, type Train, validTrain } from './train.ts';
import { openValid, preparations, repairs } from './valid.ts';

/** What hostile requests did to a server. */
export type Damage = {
  /** The requests that were answered. */
  readonly requests: number;
  readonly statuses: ReadonlyMap<number, number>;
  /** What was wrong, and the bytes that were sent on the connection. */
  readonly found: readonly Found[];
  /** The errors that the server logged. */
  readonly log: string;
  readonly memory: readonly Memory[];
  /** The processor time of both sides since the first request. */
  readonly cpuMs: { readonly server: number; readonly client: number };
};

/** What is wrong, and the bytes that were sent. */
export type Found = { readonly what: string; readonly bytes: Buffer };

/** The memory of the server after a number of requests and a garbage collection, in MiB. */
export type Memory = {
  readonly requests: number;
  readonly seconds: number;
  /** What the objects of JavaScript have. */
  readonly heap: number;
  /** Buffers, and the memory of the embedded database. */
  readonly external: number;
  /** All memory of the process (resident). */
  readonly resident: number;
};

/** When a barrage ends, and how often the memory is measured. */
export type Length = {
  readonly requests: number;
  readonly seconds?: number;
  /** The number of requests between two measurements. */
  readonly measureEvery: number;
  readonly onMeasured?: (memory: Memory) => void;
  /** Called at once with what is found. */
  readonly onFound?: (found: Found) => void;
};

/** The processor time that one request may take. */
const mostCpuMs = 250;
/** So many trains are under way at once, each on a connection of its own: a volley. */
const connections = 20;
const slowConnections = 8;
/** After so many volleys what hostile requests deleted is made again. */
const repairEvery = 4;
/** A barrage that found so much ends. */
const mostFound = 20;

/** Sends hostile requests to a server on the embedded database. The same seed makes the same choices, some of which depend on earlier answers. */
export async function barrage(
  seed: number,
  { requests, seconds = Infinity, measureEvery, onMeasured, onFound }: Length,
): Promise<Damage> {
  return withSharedDatabase('embedded', async (config) => {
    const server = await startServer(config, ['--expose-gc']);
    const port = Number(new URL(server.url).port);
    const random = randomFrom(seed);
    const corpus = openCorpus(random.fork());
    const makeValid = openValid(random.fork());
    const clients = Array.from({ length: connections }, () => openKept(port));
    const slow = openSlow(port, random.fork(), corpus, slowConnections);
    const statuses = new Map<number, number>();
    const found: Found[] = [];
    const note = (what: string, bytes: Buffer): void => {
      found.push({ what, bytes });
      onFound?.({ what, bytes });
    };
    const memory: Memory[] = [];
    const started = performance.now();
    const underWay = new Set<Promise<void>>();
    let answered = 0;
    const secondsSoFar = () => (performance.now() - started) / 1000;
    const measure = async (): Promise<void> => {
      const { heapUsed, external, rss } = await server.memory();
      const [heap = 0, outside = 0, resident = 0] = [heapUsed, external, rss].map(inMiB);
      const measured = { requests: answered, seconds: secondsSoFar(), heap, external: outside, resident };
      memory.push(measured);
      onMeasured?.(measured);
    };
    const settle = (train: Train, outcome: Outcome | undefined): void => {
      if (outcome === undefined) return;
      for (const { status } of outcome.answers) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      answered += outcome.answers.length;
      const what = judge(train, outcome);
      if (what !== undefined) note(what, train.bytes);
    };
    /** Sends a train whose last answer may never come, while others are sent. */
    const letWait = (train: Train): void => {
      const alone = openKept(port);
      const waiting = alone.send(train).then((outcome) => {
        settle(train, outcome);
        alone.close();
        underWay.delete(waiting);
      });
      underWay.add(waiting);
    };
    /** Sends bytes on a connection of their own until the server has used little enough time for them, three times at most. */
    const leastCpuMs = async (train: Train): Promise<number> => {
      let least = Number.POSITIVE_INFINITY; // the garbage collector may run meanwhile
      for (let tries = 0; tries < 3 && least > mostCpuMs; tries += 1) {
        const alone = openKept(port);
        const before = cpuMsOf(server.pid);
        await alone.send(train);
        least = Math.min(least, cpuMsOf(server.pid) - before);
        alone.close();
      }
      return least;
    };
    const findSlow = async (trains: readonly Train[]): Promise<void> => {
      const pieces = slow.sent().map((bytes) => lonely(bytes));
      for (const train of [...trains, ...pieces]) {
        if ((await leastCpuMs(train)) <= mostCpuMs) continue;
        for (const { bytes, isHead } of train.cars) {
          const ms = await leastCpuMs(lonely(bytes, isHead));
          if (ms > mostCpuMs) note(`took ${ms} ms of CPU`, bytes);
        }
      }
    };
    try {
      const first = openKept(port);
      for (const valid of preparations) settle(validTrain([valid]), await first.send(validTrain([valid])));
      first.close();
      const cpuAtStart = { server: cpuMsOf(server.pid), client: cpuMsOf(process.pid) };
      const volley = () => clients.map(() => makeTrain(random, corpus, makeValid));
      let next = volley();
      for (let count = 0, measured = 0; answered < requests && secondsSoFar() < seconds; count += 1) {
        const trains = next;
        const before = cpuMsOf(server.pid);
        const all = Promise.all(
          trains.map(async (train, index) => {
            if (train.end === 'may wait') letWait(train);
            else settle(train, await clients[index]?.send(train));
          }),
        );
        if (count % repairEvery === 0) {
          const repairing = openKept(port);
          settle(validTrain(repairs), await repairing.send(validTrain(repairs)));
          repairing.close();
        }
        slow.step();
        next = volley(); // while the server works
        await all;
        // If they took long together, each is sent again alone.
        if (cpuMsOf(server.pid) - before > mostCpuMs) await findSlow(trains);
        if (answered - measured >= measureEvery) {
          measured = answered;
          await measure();
        }
        if (found.length >= mostFound) break;
      }
      await Promise.all(underWay);
      await measure();
      for (const status of slow.failed()) note(`answered ${status} to a slow client`, Buffer.alloc(0));
      const cpuMs = {
        server: cpuMsOf(server.pid) - cpuAtStart.server,
        client: cpuMsOf(process.pid) - cpuAtStart.client,
      };
      return { requests: answered, statuses, found, log: server.log(), memory, cpuMs };
    } finally {
      slow.close();
      for (const client of clients) client.close();
      await server.kill();
    }
  });
}

/**
 * The measurements that show more memory than the first one. Without garbage, of which a loaded machine collects less, it
 * differs by a few MiB.
 */
export function grown([first, ...later]: readonly Memory[]): readonly Memory[] {
  if (first === undefined) return [];
  return later.filter(({ heap, external }) => heap + external >= first.heap + first.external + 16);
}

/** Bytes on a connection of their own, of which the client closes its half behind them. */
const lonely = (bytes: Buffer, isHead = false): Train => ({ cars: [{ bytes, isHead }], bytes, end: 'spoilt' });

/** The processor time of a process so far; Linux counts it in steps of 10 ms. */
function cpuMsOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const inMiB = (bytes: number): number => Math.round((bytes / 2 ** 20) * 10) / 10;
