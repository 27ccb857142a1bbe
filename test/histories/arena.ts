import { setTimeout as sleep } from 'node:timers/promises';
import { type Random, randomUuid } from '../races/random.ts';
import type { Action } from './action.ts';
import { ensureClass } from './class_actions.ts';
import type { Connection } from './connection.ts';
import { setAggregates, setTraits, stock } from './provider_actions.ts';
import type { Inventory, ProviderState, State } from './state.ts';
import { anyTime } from './terms.ts';
import { make } from './tree_actions.ts';

/**
 * What a history is about: hosts without children; trees that move, and claims by query in them; classes that get other names,
 * and the reshaper; consumers that are made again; or limits of projects.
 */
export const scenes = ['hosts', 'trees', 'classes', 'again', 'limits'] as const;
export type Scene = (typeof scenes)[number];

/** A few providers and consumers of one history, which no other client uses. */
export type Arena = {
  readonly scene: Scene;
  /** Also those that do not exist at first. */
  readonly providers: readonly string[];
  readonly consumers: readonly string[];
  /** The projects of its consumers. */
  readonly projects: readonly string[];
  /** All hosts are in the first one at first. */
  readonly aggregates: readonly [string, string];
  /** The names that its custom classes may have. No other history has them, so that no provider of another one fits a query for them. */
  readonly classes: readonly string[];
  readonly initial: State;
};

const inventory = (total: number, allocation_ratio = 1): Inventory => ({
  total,
  reserved: 0,
  min_unit: 1,
  max_unit: total,
  step_size: 1,
  allocation_ratio,
});

/** A provider to make. */
type Planned = Pick<ProviderState, 'inventories'> & {
  /** The index of its parent in the list; undefined for a root. */
  readonly below?: number;
  readonly traits?: readonly string[];
  readonly isMember?: boolean;
};

/** What is there at first; parents come before their children. */
type Plan = {
  readonly providers: readonly Planned[];
  /** How many more providers may be made. */
  readonly spare: number;
  readonly consumers: number;
};

const plans: Readonly<Record<Scene, (classes: readonly string[]) => Plan>> = {
  hosts: () => ({
    providers: Array.from({ length: 3 }, () => ({
      inventories: { VCPU: inventory(4, 2), MEMORY_MB: inventory(6) },
      isMember: true,
    })),
    spare: 0,
    consumers: 5,
  }),
  // Two hosts with a part each, a part that moves between them, and one without anything, which comes and goes.
  trees: ([first = '', second = '']) => ({
    providers: [
      { inventories: { [second]: inventory(5) }, isMember: true, traits: ['COMPUTE_NODE'] },
      { inventories: { [second]: inventory(5) }, isMember: true },
      { inventories: { [first]: inventory(3) }, below: 0, traits: ['HW_CPU_X86_AVX'] },
      { inventories: { [first]: inventory(3) }, below: 1 },
      { inventories: { [first]: inventory(4) } },
      { inventories: {}, below: 0 },
    ],
    spare: 1,
    consumers: 4,
  }),
  classes: ([first = '', second = '']) => ({
    providers: [
      { inventories: { VCPU: inventory(4), [first]: inventory(4), [second]: inventory(6) }, isMember: true },
      { inventories: { [first]: inventory(3) }, below: 0 },
      { inventories: { [second]: inventory(3) } },
    ],
    spare: 0,
    consumers: 3,
  }),
  again: () => ({
    providers: [{ inventories: { VCPU: inventory(8) }, isMember: true }],
    spare: 0,
    consumers: 2,
  }),
  limits: () => ({
    providers: Array.from({ length: 2 }, () => ({
      inventories: { VCPU: inventory(8), MEMORY_MB: inventory(6) },
      isMember: true,
    })),
    spare: 0,
    consumers: 5,
  }),
};

/**
 * Makes the providers and classes.
 *
 * @param pauseMs the time between two requests
 * @returns undefined if one of the requests failed: what it did is unknown, so the arena is of no use
 */
export async function makeArena(
  { send }: Connection,
  random: Random,
  scene: Scene = 'hosts',
  pauseMs = 0,
): Promise<Arena | undefined> {
  const uuids = (count: number) => Array.from({ length: count }, () => randomUuid(random));
  const own = randomUuid(random).slice(0, 8).toUpperCase();
  const ends = { hosts: [], trees: ['A', 'B'], classes: ['A', 'B', 'C'], again: [], limits: [] }[scene];
  const classes = ends.map((end) => `CUSTOM_${own}_${end}`);
  const plan = plans[scene](classes);
  const made = uuids(plan.providers.length);
  const aggregates = [randomUuid(random), randomUuid(random)] as const;
  const steps: Action[] = classes.slice(0, 2).map((name) => ensureClass(1028, name));
  let state: State = { providers: {}, consumers: {}, classes: [], former: {}, limits: {} };
  for (const [index, { inventories, below, traits = [], isMember = false }] of plan.providers.entries()) {
    const uuid = made[index] ?? '';
    const parent = below === undefined ? null : (made[below] ?? null);
    steps.push(make(1020, uuid, `${uuid} 0`, parent));
    const parts = [
      ...(Object.keys(inventories).length === 0
        ? []
        : [(generation: number) => stock(1028, uuid, generation, inventories)]),
      ...(traits.length === 0 ? [] : [(generation: number) => setTraits(1028, uuid, generation, traits)]),
      ...(isMember ? [(generation: number) => setAggregates(1028, uuid, generation, [aggregates[0]])] : []),
    ];
    steps.push(...parts.map((write, generation) => write(generation)));
  }
  for (const step of steps) {
    if (pauseMs > 0) await sleep(pauseMs);
    const reply = await send(step);
    const [after] = reply === undefined || reply.status >= 300 ? [] : step.after(state, reply, anyTime);
    if (after === undefined) return undefined;
    state = after;
  }
  return {
    scene,
    providers: [...made, ...uuids(plan.spare)],
    consumers: uuids(plan.consumers),
    projects: uuids(2),
    aggregates,
    classes,
    initial: state,
  };
}
