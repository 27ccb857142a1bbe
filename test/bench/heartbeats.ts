import { mkdtemp, rm } from 'node:fs/promises';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgresql } from '../support/postgresql.ts';
import { firstProcess } from './own_server.ts';
import { startPlacementApi } from './placement_api.ts';
import { cpuMs } from './processes.ts';

/*
 * What heartbeats cost: each of 10,000 services sends a heartbeat every 10 s, over connections that stay open. The
 * program prints how much of one core the service takes over 30 s, more than without heartbeats. With PostgreSQL it
 * also prints this for the processes of the database. One request may have the heartbeats of several services.
 *
 *     node test/bench/heartbeats.ts [embedded | postgresql] [services] [services per request]
 */

const [engine = 'postgresql', count = '10000', perRequest = '1'] = process.argv.slice(2);
const services = Number(count);
const together = Number(perRequest);
const requests = Math.ceil(services / together);
const everyMs = 10_000;
const measuredMs = 30_000;

const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-heartbeats-'));
const postgresql = engine === 'embedded' ? undefined : await startPostgresql({ durable: true });
const server = await startPlacementApi(
  postgresql === undefined ? { embeddedPath: path.join(folder, 'data') } : { connection: postgresql.url },
  { config: '[compute]\nenabled = true' },
);
const databasePids = postgresql === undefined ? [] : [await firstProcess(postgresql.url)];
const { hostname, port } = new URL(server.url);
const latencies: number[] = [];
let failed = 0;
const agents = await connectAll();
await beatOnce(everyMs);
console.log(`${services} services are registered; ${failed} requests failed.`);
const idle = await loadOver(10_000, async () => sleep(10_000));
latencies.length = 0;
const loaded = await loadOver(measuredMs, () => beatFor(measuredMs));
latencies.sort((a, b) => a - b);
const at = (share: number) => `${(latencies[Math.floor(latencies.length * share)] ?? 0).toFixed(0)} ms`;
for (const [name, before, after] of [
  ['service', idle.service, loaded.service],
  ['database', idle.database, loaded.database],
] as const) {
  console.log(`${name}: ${(after - before).toFixed(2)} % of a core (${before.toFixed(2)} % idle)`);
}
console.log(
  `${latencies.length} requests for ${together} services each, ${failed} failed, median ${at(0.5)}, 99 % within ${at(0.99)}`,
);
for (const socket of agents) socket.destroy();
await server.stop();
await postgresql?.stop();
await rm(folder, { recursive: true, force: true });

async function connectAll(): Promise<readonly net.Socket[]> {
  const sockets: net.Socket[] = [];
  for (let index = 0; index < requests; index += 1) {
    const socket = net.connect(Number(port), hostname);
    await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
    sockets.push(socket);
  }
  return sockets;
}

function beat(socket: net.Socket, index: number): Promise<void> {
  const named = Array.from({ length: together }, (_, number) => ({
    host: `compute-${index * together + number}`,
    binary: 'nova-compute',
  }));
  const body = JSON.stringify(together === 1 ? named[0] : { services: named });
  const started = performance.now();
  socket.write(
    `POST /compute/v2.1/os-services HTTP/1.1\r\nHost: ${hostname}:${port}\r\nX-Auth-Token: admin\r\n` +
      `OpenStack-API-Version: compute 2.53\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
  return new Promise((resolve) => {
    socket.once('data', (chunk) => {
      if (!chunk.subarray(9, 12).equals(Buffer.from('200'))) failed += 1;
      latencies.push(performance.now() - started);
      resolve();
    });
  });
}

/** Sends one heartbeat of every service, spread evenly over the time. */
async function beatOnce(overMs: number): Promise<void> {
  const started = performance.now();
  const sent: Promise<void>[] = [];
  for (let index = 0; index < requests; ) {
    const due = Math.min(requests, Math.ceil(((performance.now() - started) / overMs) * requests));
    for (; index < due; index += 1) {
      const socket = agents[index];
      if (socket !== undefined) sent.push(beat(socket, index));
    }
    await sleep(2);
  }
  await Promise.all(sent);
}

async function beatFor(ms: number): Promise<void> {
  for (const end = performance.now() + ms; performance.now() < end; ) await beatOnce(everyMs);
}

/** How much of a core was used during the run, in per cent. */
async function loadOver(ms: number, run: () => Promise<void>) {
  const before = [cpuMs([server.pid]), cpuMs(databasePids)] as const;
  const started = performance.now();
  await run();
  const elapsed = performance.now() - started;
  if (elapsed > ms * 1.2) console.log(`It took ${elapsed.toFixed(0)} ms instead of ${ms}: the machine is busy.`);
  const percent = (used: number) => (used / elapsed) * 100;
  return { service: percent(cpuMs([server.pid]) - before[0]), database: percent(cpuMs(databasePids) - before[1]) };
}
