import { readFile } from 'node:fs/promises';
import net from 'node:net';
import { withPlace } from '../races/place.ts';
import { randomFrom } from '../races/random.ts';
import { startServer } from '../races/server_process.ts';
import { type Hostile, hostileRequest, plainRequest } from './grammar.ts';
import { uuids } from './words.ts';

/** What hostile requests did to a server. */
export type Damage = {
  readonly requests: number;
  readonly statuses: ReadonlyMap<string, number>;
  /** Requests with a wrong answer, and what was wrong. */
  readonly found: readonly { readonly what: string; readonly bytes: Buffer }[];
  /** The errors that the server logged. */
  readonly log: string;
  readonly memory: readonly Memory[];
};

/** The memory of the server after a number of requests and a garbage collection, in MiB. */
export type Memory = {
  readonly requests: number;
  /** What the objects of JavaScript have. */
  readonly heap: number;
  /** Buffers, and the memory of the embedded database. */
  readonly external: number;
  /** All memory of the process (resident). */
  readonly resident: number;
};

/** The processor time that one request may take. */
const mostCpuMs = 250;
/** So many requests are under way at once, each on a connection of its own. */
const atOnce = 64;
/** A client gives up if nothing comes for so long, as for a request that is not complete. */
const patienceMs = 120;

/**
 * Sends hostile requests to a server on the embedded database.
 *
 * @param measureEvery the number of requests between two measurements of the memory
 */
export async function barrage(
  requests: number,
  seed: number,
  measureEvery: number,
  onMeasured: (memory: Memory) => void = () => {},
): Promise<Damage> {
  const random = randomFrom(seed);
  return withPlace('embedded', async (config) => {
    const server = await startServer(config, ['--expose-gc']);
    const port = Number(new URL(server.url).port);
    const statuses = new Map<string, number>();
    const found: { what: string; bytes: Buffer }[] = [];
    const memory: Memory[] = [];
    const measure = async (after: number): Promise<void> => {
      const { heapUsed, external, rss } = await server.memory();
      const measured = { requests: after, heap: inMiB(heapUsed), external: inMiB(external), resident: inMiB(rss) };
      memory.push(measured);
      onMeasured(measured);
    };
    const answered = async (hostile: Hostile): Promise<void> => {
      const text = await exchange(port, hostile);
      for (const [, status = ''] of text.matchAll(/HTTP\/1\.1 (\d{3}) /g)) {
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status >= '500') found.push({ what: `answered ${status}`, bytes: hostile.bytes });
      }
    };
    try {
      for (let sent = 0; sent < requests; sent += atOnce) {
        // Some requests delete them.
        for (const uuid of uuids) await answered(plainRequest('POST', '/resource_providers', { uuid, name: uuid }));
        const volley = Array.from({ length: atOnce }, () => hostileRequest(random));
        const before = await cpuMsOf(server.pid);
        await Promise.all(volley.map(answered));
        // If they took long together, each is sent again alone.
        if ((await cpuMsOf(server.pid)) - before > mostCpuMs) found.push(...(await slowAmong(volley)));
        const after = sent + atOnce;
        if (after >= requests || after % measureEvery < atOnce) await measure(after);
      }
      return { requests, statuses, found, log: server.log(), memory };
    } finally {
      await server.kill();
    }

    async function slowAmong(volley: readonly Hostile[]) {
      const slow: { what: string; bytes: Buffer }[] = [];
      for (const hostile of volley) {
        let least = Number.POSITIVE_INFINITY; // the garbage collector may run meanwhile
        for (let tries = 0; tries < 3 && least > mostCpuMs; tries += 1) {
          const before = await cpuMsOf(server.pid);
          await answered(hostile);
          least = Math.min(least, (await cpuMsOf(server.pid)) - before);
        }
        if (least > mostCpuMs) slow.push({ what: `took ${least} ms of CPU`, bytes: hostile.bytes });
      }
      return slow;
    }
  });
}

/** Sends bytes on a connection, and reads what comes back. */
export function exchange(port: number, { bytes, cutAt, isHalfClosed }: Hostile): Promise<string> {
  return new Promise((resolve) => {
    const socket = net.connect({ port, host: '127.0.0.1', allowHalfOpen: isHalfClosed });
    let text = '';
    socket.setEncoding('latin1').setTimeout(patienceMs);
    socket.on('data', (data) => {
      text += data;
    });
    socket.on('end', () => socket.destroy());
    socket.on('timeout', () => socket.destroy());
    socket.on('error', () => {});
    socket.on('close', () => resolve(text));
    socket.write(bytes.subarray(0, cutAt));
    if (cutAt !== undefined) setImmediate(() => socket.write(bytes.subarray(cutAt)));
    if (isHalfClosed) setImmediate(() => socket.end());
  });
}

/** The processor time of a process so far; Linux counts it in steps of 10 ms. */
async function cpuMsOf(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).replace(/^.*\) /, '').split(' ');
  return (Number(fields[11]) + Number(fields[12])) * 10;
}

const inMiB = (bytes: number): number => Math.round((bytes / 2 ** 20) * 10) / 10;
