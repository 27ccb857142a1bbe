import { statfs } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { Counter, Gauge, type Registry } from 'prom-client';
import type { Database } from '../../db/engine/connect.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { LogHealth } from '../log/log.ts';
import { atIntervals } from './gathering.ts';
import type { IdWatch } from './id_watch.ts';

/*
 * Metrics whose values are read from the process at each scrape: of its state, its log and its certificate.
 */

/** A gauge or a counter of one plain value. */
export type Figure = readonly [name: string, help: string, value: () => number];

/** Registers gauges of one plain value each. */
export function registerGauges(register: Registry, figures: readonly Figure[]): void {
  for (const [name, help, value] of figures) {
    new Gauge({
      name,
      help,
      registers: [register],
      collect() {
        this.set(value());
      },
    });
  }
}

/**
 * Registers the metrics that are read from the process at each scrape: of its fleet, its connections, and the ids of the
 * database as it last read them.
 *
 * @param last.fleetAgeSeconds how old the fleet was before the scrape refreshed it
 * @param last.isReady what the last check found
 */
export function registerState(
  register: Registry,
  {
    database,
    fleet,
    ids,
  }: { readonly database: Database; readonly fleet: FleetKeeper; readonly ids: Pick<IdWatch, 'used'> },
  last: { readonly fleetAgeSeconds: () => number; readonly isReady: () => boolean },
): void {
  const registers = [register];
  registerGauges(register, [
    ['placement_providers', 'Resource providers in the fleet.', () => fleet.known.byId.size],
    ['placement_provider_trees', 'Trees of resource providers in the fleet.', () => fleet.known.roots.length],
    [
      'placement_fleet_age_seconds',
      'How long before this scrape the fleet was up to date with the database.',
      last.fleetAgeSeconds,
    ],
    [
      'placement_ready',
      'The result of /readyz, checked at each scrape: 1 for 200, 0 for 503.',
      () => (last.isReady() ? 1 : 0),
    ],
    ['placement_database_connections', 'Connections to the database.', () => database.connections().open],
    ['placement_database_connections_idle', 'Of these, those not in use.', () => database.connections().idle],
    ['placement_database_waiting', 'Requests that wait for a connection.', () => database.connections().waiting],
  ]);
  new Gauge({
    name: 'placement_ids_used_ratio',
    help: 'What is used of the ids of a table, 0 to 1; at 1 no row can be added to it. Read once a minute.',
    labelNames: ['table'],
    registers,
    collect() {
      this.reset();
      for (const [table, used] of ids.used()) this.set({ table }, used);
    },
  });
  const counters: readonly Figure[] = [
    [
      'placement_fleet_refreshes_total',
      'How often the fleet was refreshed from the database.',
      () => fleet.counts.refreshes,
    ],
    ['placement_fleet_loads_total', 'How often the fleet was loaded whole.', () => fleet.counts.loads],
  ];
  for (const [name, help, value] of counters) {
    new Counter({
      name,
      help,
      registers,
      collect() {
        this.reset();
        this.inc(value());
      },
    });
  }
}

/** How long a scrape waits for the file system of the log file, in milliseconds: one in the network may not answer. */
const diskTimeoutMs = 1_000;

/** Registers the metrics of the log: whether its lines arrive where they are written to. */
export function registerLog(register: Registry, { file, isWritable, waitingBytes, linesLost }: LogHealth): void {
  const registers = [register];
  registerGauges(register, [
    ['placement_log_writable', 'Whether the last write to the log succeeded, 1 or 0.', () => (isWritable() ? 1 : 0)],
    [
      'placement_log_waiting_bytes',
      'Text of the log that is not written yet. Lines are lost where it would be more than 16 MiB.',
      waitingBytes,
    ],
  ]);
  new Counter({
    name: 'placement_log_lines_lost_total',
    help: 'Lines of the log that were lost, since too much text waited to be written.',
    registers,
    collect() {
      this.reset();
      this.inc(linesLost());
    },
  });
  const freeBytes = inTime(async () => {
    const name = file();
    if (name === undefined) return undefined;
    const { bavail, bsize } = await statfs(name);
    return bavail * bsize;
  }, diskTimeoutMs);
  new Gauge({
    name: 'placement_log_disk_free_bytes',
    help: 'What is free for the service on the disk of the log file; missing where there is no log file, or the disk cannot be read.',
    registers,
    async collect() {
      const free = await freeBytes();
      if (free === undefined) this.remove();
      else this.set(free);
    },
  });
}

/** What a read returns, or undefined where it fails or takes too long. No second read begins while one is under way. */
function inTime<Value>(read: () => Promise<Value>, timeoutMs: number): () => Promise<Value | undefined> {
  const answer = atIntervals(0, () => read().catch(() => undefined));
  return () => Promise.race([answer(), sleep(timeoutMs, undefined, { ref: false })]);
}

/** Registers the metric of the certificate by which the process serves. @param endsMs undefined where it serves without TLS */
export function registerCertificate(register: Registry, endsMs: () => number | undefined): void {
  new Gauge({
    name: 'placement_tls_certificate_left_seconds',
    help: 'The time until the certificate of [ssl] cert_file ends, below 0 where it has ended; missing without TLS.',
    registers: [register],
    collect() {
      const ends = endsMs();
      if (ends === undefined) this.remove();
      else this.set((ends - Date.now()) / 1000);
    },
  });
}
