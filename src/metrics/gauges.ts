import { Gauge, type Registry } from 'prom-client';

/** A figure that is read from the process at each scrape. */
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
