import { Counter, Gauge, type Registry } from 'prom-client';
import type { Database } from '../../db/engine/connect.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import { type Figure, registerGauges } from './gauges.ts';
import type { IdWatch } from './id_watch.ts';

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
