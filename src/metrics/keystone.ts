import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { KeystoneObserver } from '../access/keystone/authenticate.ts';

const outcomes = ['accepted', 'unauthorized', 'unavailable', 'busy'] as const;

/** Registers the metrics of a service that asks Keystone about tokens. */
export function registerKeystone(register: Registry): KeystoneObserver {
  const registers = [register];
  const attempts = new Counter({
    name: 'placement_keystone_requests_total',
    help: 'Requests to Keystone, each repetition as well, by the status of the answer; none where there was no answer.',
    labelNames: ['status'],
    registers,
  });
  const durations = new Histogram({
    name: 'placement_keystone_request_duration_seconds',
    help: 'Time from a request to Keystone to its answer, or until it was given up.',
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers,
  });
  const decided = new Counter({
    name: 'placement_keystone_decisions_total',
    help: 'Requests that Keystone, or what is remembered of its answers, has decided about, by the outcome.',
    labelNames: ['outcome'],
    registers,
  });
  // So that the first one is a growth, which queries see.
  for (const outcome of outcomes) decided.inc({ outcome }, 0);
  for (const status of ['200', 'none']) attempts.inc({ status }, 0);
  return {
    attempted: ({ status, seconds }) => {
      attempts.inc({ status: status === undefined ? 'none' : String(status) });
      durations.observe(seconds);
    },
    decided: (outcome) => decided.inc({ outcome }),
    countQueued: (size) => {
      new Gauge({
        name: 'placement_keystone_queue_length',
        help: 'Questions that wait for their turn to be asked of Keystone.',
        registers,
        collect() {
          this.set(size());
        },
      });
    },
  };
}
