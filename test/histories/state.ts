import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Term } from './terms.ts';

/*
 * What the service should hold, as the documents describe it: a few providers and consumers that no other client uses.
 * It shares no code with the service.
 */

export type Inventory = {
  readonly total: number;
  readonly reserved: number;
  readonly min_unit: number;
  readonly max_unit: number;
  readonly step_size: number;
  readonly allocation_ratio: number;
};

/** Amounts by resource class. */
export type Amounts = Readonly<Record<string, number>>;

export type ProviderState = {
  readonly name: string;
  readonly generation: number;
  /** Null for the root of a tree. */
  readonly parent: string | null;
  readonly inventories: Readonly<Record<string, Inventory>>;
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
};

export type ConsumerState = {
  /** How often it was written: what answers below 2.1 show. */
  readonly generation: number;
  /** What is added to it in answers from 2.1 on; undefined as long as none has shown it. */
  readonly shift: number | undefined;
  readonly project: string;
  readonly user: string;
  readonly type: string;
  /** By provider. */
  readonly allocations: Readonly<Record<string, Amounts>>;
  /** Undefined if it lasts. */
  readonly term: Term | undefined;
  /** Undefined if it has none. */
  readonly name?: string | undefined;
};

/** All that the clients of one history can see and change. A provider or consumer that does not exist is absent. */
export type State = {
  readonly providers: Readonly<Record<string, ProviderState>>;
  readonly consumers: Readonly<Record<string, ConsumerState>>;
  /** The custom resource classes, which only this history uses. */
  readonly classes: readonly string[];
  /**
   * By consumer, the generations that answers from 2.1 on showed of former consumers with this UUID; by project, that of its limits that
   * were deleted last.
   */
  readonly former: Readonly<Record<string, readonly number[]>>;
  /** The limits of projects, which only this history uses. */
  readonly limits: Readonly<Record<string, Limits>>;
};

/** How much a project may have by class, and how many consumers; and how often that was written. */
export type Limits = {
  readonly resources: Amounts;
  /** By type; `all` is for any. */
  readonly consumers: Amounts;
  readonly generation: number;
};

/** JSON with sorted keys, in which equal content is equal text. */
export const sortedJson = (value: unknown): string =>
  JSON.stringify(value, (_, each: unknown) =>
    typeof each === 'object' && each !== null && !Array.isArray(each)
      ? Object.fromEntries(Object.entries(each).sort(([a], [b]) => (a < b ? -1 : 1)))
      : each,
  );

/** Computes something once for each object. What is in a state never changes, and most states share most of it. */
export function once<Key extends object, Value>(compute: (key: Key) => Value): (key: Key) => Value {
  const known = new WeakMap<Key, { readonly value: Value }>();
  return (key) => {
    let found = known.get(key);
    if (found === undefined) {
      found = { value: compute(key) };
      known.set(key, found);
    }
    return found.value;
  };
}

const textOf = once(sortedJson);
const textOfAll = once((all: Readonly<Record<string, object>>): string =>
  Object.keys(all)
    .sort()
    .map((uuid) => `${uuid}${textOf(all[uuid] ?? {})}`)
    .join(),
);

/** Equal states have equal keys. */
export const keyOf = ({ providers, consumers, classes, former, limits }: State): string =>
  `${textOfAll(providers)} ${textOfAll(consumers)} ${classes.toSorted()} ${textOfAll(former)} ${textOfAll(limits)}`;

/** What the consumers of a project have by class, and how many of them have something by type. */
export function projectUse({ consumers }: Pick<State, 'consumers'>, project: string) {
  const resources: Record<string, number> = {};
  const counts: Record<string, number> = { all: 0 };
  for (const { project: of, type, allocations } of Object.values(consumers)) {
    if (of !== project) continue;
    for (const amounts of Object.values(allocations)) {
      for (const [name, amount] of Object.entries(amounts)) resources[name] = (resources[name] ?? 0) + amount;
    }
    for (const each of ['all', type]) counts[each] = (counts[each] ?? 0) + 1;
  }
  return { resources, consumers: counts } as const;
}

/** Whether a change of consumers raises what a project has above one of its limits. */
export const exceedsLimit = (before: State, after: Pick<State, 'consumers'>): boolean =>
  Object.entries(before.limits).some(([project, limits]) => {
    const [had, has] = [projectUse(before, project), projectUse(after, project)];
    return (['resources', 'consumers'] as const).some((kind) =>
      Object.entries(limits[kind]).some(
        ([name, limit]) => (has[kind][name] ?? 0) > limit && (has[kind][name] ?? 0) > (had[kind][name] ?? 0),
      ),
    );
  });

/** What all consumers together have of each provider. */
export const usagesOf = once(
  (consumers: State['consumers']): Readonly<Record<string, Amounts>> => sumOf(Object.values(consumers)),
);

function sumOf(consumers: readonly ConsumerState[]): Readonly<Record<string, Amounts>> {
  const sums: Record<string, Record<string, number>> = {};
  for (const { allocations } of consumers) {
    for (const [provider, amounts] of Object.entries(allocations)) {
      sums[provider] ??= {};
      const sum = sums[provider];
      for (const [name, amount] of Object.entries(amounts)) sum[name] = (sum[name] ?? 0) + amount;
    }
  }
  return sums;
}

/** How much of a class the consumers of a state have of a provider. */
export const usedOf = ({ consumers }: State, provider: string, resourceClass: string): number =>
  usagesOf(consumers)[provider]?.[resourceClass] ?? 0;

/** How much of an inventory consumers may have together. */
export const capacityOf = ({ total, reserved, allocation_ratio }: Inventory): number =>
  Math.floor((total - reserved) * allocation_ratio);

/** Changes some fields of a provider. */
export function withProvider(state: State, uuid: string, change: Partial<ProviderState>): State {
  const provider = providerOf(state, uuid);
  return { ...state, providers: { ...state.providers, [uuid]: { ...provider, ...change } } };
}

/** A provider that exists in this state. */
export function providerOf({ providers }: State, uuid: string): ProviderState {
  const provider = providers[uuid];
  if (provider === undefined) throw new Error(`The history has no provider ${uuid}.`);
  return provider;
}

/** The same state without a provider. */
export function withoutProvider(state: State, uuid: string): State {
  const { [uuid]: _, ...providers } = state.providers;
  return { ...state, providers };
}

/** Whether inventories and allocations may name a class. The standard ones always exist. */
export const isClass = ({ classes }: State, name: string): boolean =>
  !name.startsWith('CUSTOM_') || classes.includes(name);

/** Sets the record of a consumer, or removes it. */
export function withConsumer(state: State, uuid: string, consumer: ConsumerState | undefined): State {
  const { [uuid]: _, ...others } = state.consumers;
  return { ...state, consumers: consumer === undefined ? others : { ...others, [uuid]: consumer } };
}

/** An entity tag is the SHA-512 of the content as compact JSON with sorted keys. */
const tagOf = (content: unknown): string => `W/"${createHash('sha512').update(sortedJson(content)).digest('hex')}"`;

/** The entity tags of the documents, by what they are of. */
export const tags = {
  provider: (uuid: string, { name, parent }: ProviderState) => tagOf({ name, parent_provider_uuid: parent, uuid }),
  inventory: once(tagOf),
  inventories: once(({ inventories }: ProviderState) => tagOf(inventories)),
  traits: once(({ traits }: ProviderState) => tagOf(traits.toSorted())),
  aggregates: once(({ aggregates }: ProviderState) => tagOf(aggregates.toSorted())),
  consumer: once(({ allocations, project, user, type }: ConsumerState) =>
    tagOf({
      allocations: Object.fromEntries(Object.entries(allocations).map(([uuid, resources]) => [uuid, { resources }])),
      consumer_type: type,
      project_id: project,
      user_id: user,
    }),
  ),
} as const;

/** Whether an answer has all of this content; what it has in addition does not matter, nor the order of plain lists. */
export function shows(answer: unknown, content: unknown): boolean {
  if (Array.isArray(content)) {
    return Array.isArray(answer) && isDeepStrictEqual(sortedTexts(answer), sortedTexts(content));
  }
  if (typeof content !== 'object' || content === null) return answer === content;
  if (typeof answer !== 'object' || answer === null) return false;
  // An object: its keys are the requested names.
  const found = answer as Readonly<Record<string, unknown>>;
  return Object.entries(content).every(([key, value]) => shows(found[key], value));
}

/** The same, of an object that must have these keys and no others. */
export const showsExactly = (answer: unknown, content: Readonly<Record<string, unknown>>): boolean =>
  typeof answer === 'object' &&
  answer !== null &&
  isDeepStrictEqual(Object.keys(answer).sort(), Object.keys(content).sort()) &&
  shows(answer, content);

const sortedTexts = (list: readonly unknown[]): readonly string[] => list.map(sortedJson).toSorted();
