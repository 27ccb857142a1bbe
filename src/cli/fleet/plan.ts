import { type Inventory, type NewInventory, providerUuid, type WholeProvider } from '../../client/index.ts';
import { inventoryDefaults } from '../../placement/inventory.ts';
import { nearName, nearNames, unnumbered } from '../../text/strings.ts';
import { inventoryFields, resourcesText } from '../amounts.ts';
import { isSameList, type ListDifference, listDifference } from '../differences.ts';
import { isDrainMark, reservedBeforeDrain, withNewDrain, withoutDrain } from '../drain_marks.ts';
import type { FileKeys, FileProvider, FleetFile } from './fleet_file.ts';
import { isPoolMark, markOfPool } from './pool_mark.ts';

type Stock = { readonly [resourceClass: string]: Inventory };

/** The change of the inventory of a class: a new one has no `before`, a removed one no `after`. */
type InventoryDifference = {
  readonly resource_class: string;
  readonly before: Inventory | undefined;
  readonly after: Inventory | undefined;
};

/** What has to be done about one provider of a file. */
export type ProviderStep = {
  readonly name: string;
  readonly uuid: string;
  /** The generation that guards the writes; undefined for a new provider. */
  readonly generation: number | undefined;
  /** Its parent by name, if that changes; for a new provider without `before`. */
  readonly parent: { readonly before?: string | null; readonly after: string | null } | undefined;
  readonly traits: ListDifference;
  readonly aggregates: ListDifference;
  readonly inventories: readonly InventoryDifference[];
  /** What is written; undefined for what stays. Of a drained provider that is more than what is shown. */
  readonly writes: {
    readonly parentUuid: string | null | undefined;
    readonly traits: readonly string[] | undefined;
    readonly aggregates: readonly string[] | undefined;
    readonly inventories: Stock | undefined;
  };
};

/** A provider that `--prune` leaves, and why. */
export type KeptProvider = { readonly name: string; readonly uuid: string; readonly why: string };

/** The changes from the present providers to the providers of a file. */
export type FleetPlan = {
  /** Why nothing may be written at all, each with its path in the file. */
  readonly problems: readonly string[];
  readonly newClasses: readonly string[];
  readonly newTraits: readonly string[];
  /** For a new name that may be a mistake: the known name from which it differs by a letter or two. */
  readonly nearNames: ReadonlyMap<string, string>;
  /** Providers to create or to change, in waves: a provider is written after all earlier waves. */
  readonly waves: readonly (readonly ProviderStep[])[];
  /** Providers to delete, after everything else, in waves too. */
  readonly deletions: readonly (readonly WholeProvider[])[];
  readonly kept: readonly KeptProvider[];
  /** How many providers of the file need no change. */
  readonly unchanged: number;
};

/** The resource classes and traits that the service knows. */
export type KnownNames = { readonly classes: ReadonlySet<string>; readonly traits: ReadonlySet<string> };

/** What the step of one provider depends on besides itself. */
export type StepContext = {
  readonly pool: string | undefined;
  /** The names of `drainedNames`. */
  readonly drained: ReadonlySet<string>;
  readonly uuidOf: (name: string) => string;
  readonly nameOf: (uuid: string) => string;
};

/** The UUID of a new provider of a file. */
const newUuidOf = ({ name, uuid }: FileProvider): string => uuid ?? providerUuid(name);

/**
 * Compares a file with the present providers. It reads and writes nothing: fields that a provider of the file lacks stay, and so do all
 * providers that the file does not name, unless they are pruned and a file of the same pool has created them.
 */
export function planApply(
  file: FleetFile,
  present: readonly WholeProvider[],
  known: KnownNames,
  { prune }: { readonly prune: boolean },
): FleetPlan {
  const byName = new Map(present.map((each) => [each.name, each]));
  const byUuid = new Map(present.map((each) => [each.uuid, each]));
  const uuids = new Map(file.providers.map((each) => [each.name, byName.get(each.name)?.uuid ?? newUuidOf(each)]));
  const context: StepContext = {
    pool: file.pool,
    drained: drainedNames(file, byName),
    uuidOf: (name) => uuids.get(name) ?? '',
    nameOf: (uuid) => byUuid.get(uuid)?.name ?? uuid,
  };
  const problems: string[] = [];
  const steps = new Map<string, ProviderStep>();
  const levels = new Map<string, number>();
  const waves: ProviderStep[][] = [];
  for (const wanted of file.providers) {
    const level = wanted.parent === null ? 0 : (levels.get(wanted.parent) ?? 0) + 1;
    levels.set(wanted.name, level);
    const before = byName.get(wanted.name);
    const step = stepOf(wanted, before, context);
    if (step === undefined) continue;
    steps.set(wanted.name, step);
    waves[level] ??= [];
    waves[level].push(step);
    problems.push(...problemsOf(file, wanted, before, step, known));
  }
  problems.push(...takenUuids(file, byName, byUuid));
  const pruned = prune && file.pool !== undefined ? prunable(file, file.pool, present) : { deletions: [], kept: [] };
  const written = [...steps.values()].map(({ writes }) => writes);
  const newClasses = missing(
    written.flatMap(({ inventories = {} }) => Object.keys(inventories)),
    known.classes,
  );
  const newTraits = missing(
    written.flatMap(({ traits = [] }) => traits),
    known.traits,
  );
  return {
    problems,
    newClasses,
    newTraits,
    nearNames: new Map([...nearOfMade(newClasses, known.classes), ...nearOfMade(newTraits, known.traits)]),
    waves: waves.filter((wave) => wave !== undefined),
    ...pruned,
    unchanged: file.providers.length - steps.size,
  };
}

/** The drained providers of a file, and new providers below a drained one: the whole tree of a drained host takes no new claims. */
export function drainedNames(
  { providers }: FleetFile,
  byName: ReadonlyMap<string, WholeProvider>,
): ReadonlySet<string> {
  const drained = new Set<string>();
  // Parents come first.
  for (const { name, parent } of providers) {
    const present = byName.get(name);
    const isBelow = parent !== null && drained.has(parent) && isMade(name, present);
    if (isBelow || (present !== undefined && reservedBeforeDrain(present) !== undefined)) drained.add(name);
  }
  return drained;
}

/** The changes of a provider of a file; undefined if there are none. */
export function stepOf(
  wanted: FileProvider,
  present: WholeProvider | undefined,
  { pool, drained, uuidOf, nameOf }: StepContext,
): ProviderStep | undefined {
  const now = present && withoutDrain(present);
  const parentUuid = wanted.parent === null ? null : uuidOf(wanted.parent);
  const parentNow = present && parentOf(present);
  const target = {
    traits: [...new Set([...marksOf(wanted, present, pool), ...(wanted.traits ?? now?.traits.filter(isNoMark) ?? [])])],
    inventories: wanted.inventories === undefined ? (now?.inventories ?? {}) : completed(wanted.inventories, now),
    aggregates: wanted.aggregates ?? now?.aggregates ?? [],
  };
  const inventories = inventoryDifferences(now?.inventories ?? {}, target.inventories);
  const isMadeDrained = drained.has(wanted.name) && isMade(wanted.name, present);
  const made = isMadeDrained ? withNewDrain(target) : target;
  const stored = present && reservedBeforeDrain(present) ? asDrained(present, target, inventories.length > 0) : made;
  const writes = {
    parentUuid: present === undefined || parentNow !== parentUuid ? parentUuid : undefined,
    traits: isSameList(present?.traits ?? [], stored.traits) ? undefined : stored.traits,
    aggregates: isSameList(present?.aggregates ?? [], target.aggregates, lowerCase) ? undefined : target.aggregates,
    inventories:
      inventoryDifferences(present?.inventories ?? {}, stored.inventories).length === 0
        ? undefined
        : stored.inventories,
  };
  if (present !== undefined && Object.values(writes).every((each) => each === undefined)) return undefined;
  return {
    name: wanted.name,
    uuid: present?.uuid ?? newUuidOf(wanted),
    generation: present?.generation,
    parent:
      present === undefined
        ? { after: wanted.parent }
        : writes.parentUuid === undefined
          ? undefined
          : { before: parentNow == null ? null : nameOf(parentNow), after: wanted.parent },
    traits: listDifference(now?.traits.filter(isNoMark) ?? [], target.traits.filter(isNoMark)),
    aggregates: listDifference(now?.aggregates ?? [], target.aggregates, lowerCase),
    inventories,
    writes,
  };
}

const isNoMark = (trait: string): boolean => !isPoolMark(trait);

/** Other programs can write loops into the database; then a root has a parent. */
const parentOf = ({ uuid, root_provider_uuid: root, parent_provider_uuid: parent }: WholeProvider): string | null =>
  root === uuid ? null : parent;

/** Whether the command creates a provider, or was stopped after it created the provider: it has the derived UUID and no write since. */
const isMade = (name: string, present: WholeProvider | undefined): boolean =>
  present === undefined || (present.generation === 0 && present.uuid === providerUuid(name));

/** The marks of a provider: its present marks, and the mark of the pool if the provider is new. */
function marksOf(
  { name }: FileProvider,
  present: WholeProvider | undefined,
  pool: string | undefined,
): readonly string[] {
  const marks = present?.traits.filter(isPoolMark) ?? [];
  return pool !== undefined && isMade(name, present) && marks.length === 0 ? [markOfPool(pool)] : marks;
}

/** What the service takes for the fields that a new inventory leaves out. */
export const defaultFields = {
  reserved: inventoryDefaults.reserved,
  min_unit: inventoryDefaults.minUnit,
  max_unit: inventoryDefaults.maxUnit,
  step_size: inventoryDefaults.stepSize,
  allocation_ratio: inventoryDefaults.allocationRatio,
} as const;

/** Fields that the file leaves out stay as they are. In a new inventory they get the defaults of the service. */
function completed(wanted: { readonly [resourceClass: string]: NewInventory }, now: WholeProvider | undefined): Stock {
  return Object.fromEntries(
    Object.entries(wanted).map(([name, given]) => [name, { ...defaultFields, ...now?.inventories[name], ...given }]),
  );
}

/** A drained provider stays drained: the inventories of the file are used when the drain is lifted. */
const asDrained = (
  present: WholeProvider,
  target: { readonly traits: readonly string[]; readonly inventories: Stock },
  isChanged: boolean,
): { readonly traits: readonly string[]; readonly inventories: Stock } =>
  isChanged
    ? withNewDrain({ ...present, ...target })
    : {
        traits: [...target.traits, ...present.traits.filter(isDrainMark)],
        inventories: present.inventories,
      };

function inventoryDifferences(before: Stock, after: Stock): readonly InventoryDifference[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((name) => {
    const [one, other] = [before[name], after[name]];
    if (one !== undefined && other !== undefined && inventoryFields.every((field) => one[field] === other[field])) {
      return [];
    }
    return [{ resource_class: name, before: one, after: other }];
  });
}

const lowerCase = (text: string): string => text.toLowerCase();

function problemsOf(
  { mistake }: FleetFile,
  { keys, name, traits: written = [] }: FileProvider,
  present: WholeProvider | undefined,
  { inventories, traits }: ProviderStep,
  known: KnownNames,
): readonly string[] {
  const at = (key: FileKeys, problem: string) => mistake([...keys, ...key], problem);
  const amounts = inventories.flatMap(({ resource_class: one, after }) => {
    const used = present?.usages[one] ?? 0;
    if (after === undefined) {
      return used === 0 ? [] : [at(['inventories'], `${one} is missing, and ${used} of it is in use on ${name}`)];
    }
    const unknown = unknownName(one, known.classes);
    if (unknown !== undefined) return [at(['inventories', one], `there is no such resource class${unknown}`)];
    const { total, reserved } = after;
    return reserved <= total
      ? []
      : [at(['inventories', one], `reserved is ${reserved}, more than the total of ${total}`)];
  });
  const unknownTraits = traits.added.flatMap((one) => {
    const unknown = unknownName(one, known.traits);
    return unknown === undefined ? [] : [at(['traits', written.indexOf(one)], `there is no trait ${one}${unknown}`)];
  });
  return [...amounts, ...unknownTraits];
}

/** The hint for a name that the service does not know and that cannot be created; undefined for all other names. */
function unknownName(name: string, known: ReadonlySet<string>): string | undefined {
  if (known.has(name) || /^CUSTOM_./.test(name)) return undefined;
  const near = nearNames(name, known);
  if (near !== undefined) return `; is it ${near}?`;
  return `; one that can be made begins with CUSTOM_, such as CUSTOM_${name.toUpperCase().replaceAll(/[^A-Z0-9_]+/g, '_')}`;
}

/** Names that differ in their numbers alone, `CUSTOM_RACK_1` and `CUSTOM_RACK_2`, are of a series, and no mistakes. */
function* nearOfMade(made: readonly string[], known: ReadonlySet<string>): Generator<readonly [string, string]> {
  for (const name of made.filter((each) => !isPoolMark(each))) {
    const near = nearName(
      name,
      [...known].filter((each) => unnumbered(each) !== unnumbered(name)),
    );
    if (near !== undefined) yield [name, near];
  }
}

const missing = (names: readonly string[], known: ReadonlySet<string>): readonly string[] =>
  [...new Set(names)].filter((name) => !known.has(name));

/** Problems of providers that cannot be created because another provider has their UUID. */
function takenUuids(
  { providers, mistake }: FleetFile,
  byName: ReadonlyMap<string, WholeProvider>,
  byUuid: ReadonlyMap<string, WholeProvider>,
): readonly string[] {
  const taken = new Map(Array.from(byUuid, ([uuid, { name }]) => [uuid, name]));
  return providers.flatMap((wanted) => {
    if (byName.has(wanted.name)) return [];
    const uuid = newUuidOf(wanted);
    const other = taken.get(uuid);
    taken.set(uuid, wanted.name);
    if (other === undefined) return [];
    const remedy =
      wanted.uuid === undefined
        ? 'it was renamed: write its present name, or give a new provider another UUID by the key uuid'
        : 'give another one';
    return [mistake([...wanted.keys, 'uuid'], `${uuid} is the UUID of provider ${JSON.stringify(other)}; ${remedy}`)];
  });
}

/** The providers of the pool that the file no longer has: those that can be deleted, children before parents, and the rest. */
function prunable(
  { providers }: FleetFile,
  pool: string,
  present: readonly WholeProvider[],
): Pick<FleetPlan, 'deletions' | 'kept'> {
  const inFile = new Set(providers.map(({ name }) => name));
  const mark = markOfPool(pool);
  const others = present.filter(({ name }) => !inFile.has(name));
  const gone = new Set(others.filter(({ traits }) => traits.includes(mark)).map(({ uuid }) => uuid));
  // A child that is in the file is below a provider of the file by then.
  const children = Map.groupBy(others, (each) => parentOf(each) ?? '');
  const left = new Set(others.map(({ uuid }) => uuid));
  const deletions: WholeProvider[][] = [];
  let rest = others.filter(({ uuid }) => gone.has(uuid));
  for (;;) {
    const isFree = ({ uuid, usages }: WholeProvider) =>
      Object.values(usages).every((used) => used === 0) &&
      (children.get(uuid) ?? []).every((child) => !left.has(child.uuid));
    const wave = rest.filter(isFree);
    if (wave.length === 0) break;
    deletions.push(wave);
    for (const { uuid } of wave) left.delete(uuid);
    rest = rest.filter(({ uuid }) => left.has(uuid));
  }
  const kept = rest.map(({ name, uuid, usages }) => {
    const used = Object.fromEntries(Object.entries(usages).filter(([, amount]) => amount > 0));
    const child = children.get(uuid)?.find((one) => left.has(one.uuid));
    const why =
      Object.keys(used).length > 0
        ? `in use: ${resourcesText(used)}`
        : `has the child ${child?.name ?? ''}, which stays`;
    return { name, uuid, why };
  });
  return { deletions, kept };
}
