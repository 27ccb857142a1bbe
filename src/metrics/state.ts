import { Counter, Gauge, type Registry } from 'prom-client';
import type { Database } from '../../db/engine/connect.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';

type Figure = readonly [name: string, help: string, value: () => number];

/**
 * Registers the metrics that are read from the process at each scrape: of its fleet and its connections.
 *
 * @param fleetAgeSeconds how old the fleet was before the scrape refreshed it
 */
export function registerState(
  register: Registry,
  database: Database,
  fleet: FleetKeeper,
  fleetAgeSeconds: () => number,
): void {
  const registers = [register];
  const gauges: readonly Figure[] = [
    ['placement_providers', 'Resource providers in the fleet.', () => fleet.known.byId.size],
    ['placement_provider_trees', 'Trees of resource providers in the fleet.', () => fleet.known.roots.length],
    ['placement_fleet_age_seconds', 'How long before this scrape the fleet was true to the database.', fleetAgeSeconds],
    ['placement_database_connections', 'Connections to the database.', () => database.connections().open],
    ['placement_database_connections_idle', 'Of these, those not in use.', () => database.connections().idle],
    ['placement_database_waiting', 'Requests that wait for a connection.', () => database.connections().waiting],
  ];
  for (const [name, help, value] of gauges) {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  }
  const counters: readonly Figure[] = [
    ['placement_fleet_refreshes_total', 'How often the fleet was brought up to date.', () => fleet.counts.refreshes],
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
