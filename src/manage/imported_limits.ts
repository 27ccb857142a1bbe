import type { StoredLimits, StoredValues } from '../../db/statements/limits.ts';
import type { UnifiedLimit, UnifiedLimits } from '../access/keystone/unified_limits.ts';
import { maxInteger } from '../placement/inventory.ts';
import { anyType } from '../placement/limits.ts';

/** What an import of limits would change. */
export type LimitChange = {
  /** Empty for the defaults. */
  readonly project: string;
  /** The values to store; undefined to delete the values of an earlier import. */
  readonly values: StoredValues | undefined;
  /** The present generation; null if nothing is stored. */
  readonly known: number | null;
};

/** What an import of limits does. */
export type LimitPlan = {
  readonly changes: readonly LimitChange[];
  /** How many projects, with the defaults, have these values already. */
  readonly unchanged: number;
  /** The limits that are not imported, one sentence for each. */
  readonly leftOut: readonly string[];
};

/**
 * Decides what an import of unified limits changes. `class:VCPU` limits the resource class, `servers` the consumers of any type; -1 stands for
 * no limit, also where there is a default. What was stored otherwise than by an import stays as it is.
 *
 * @param stored the values of all projects that have some, and the defaults
 * @param classes the names of all resource classes
 */
export function planImport(
  unified: UnifiedLimits,
  stored: readonly StoredLimits[],
  classes: ReadonlySet<string>,
): LimitPlan {
  const leftOut = new Set<string>();
  const wanted = new Map<
    string,
    { resources: Record<string, number | null>; consumers: Record<string, number | null> }
  >();
  const add = (project: string, { name, value }: UnifiedLimit): void => {
    const of = limitedBy(name, classes);
    if ('reason' in of) return void leftOut.add(`${name}: ${of.reason}`);
    if (value < -1 || value > maxInteger) {
      return void leftOut.add(
        `${name} = ${value}${project && ` of project ${project}`}: the value must be from -1 to ${maxInteger}`,
      );
    }
    // A default of any amount is none.
    if (project === '' && value === -1) return;
    const values = wanted.get(project) ?? { resources: {}, consumers: {} };
    wanted.set(project, values);
    values[of.kind][of.name] = value === -1 ? null : value;
  };
  for (const limit of unified.registered) add('', limit);
  for (const limit of unified.limits) add(limit.project, limit);
  for (const { domain, name } of unified.domains) {
    leftOut.add(`${name} of domain ${domain}: it is of a domain, not of a project`);
  }

  const changes: LimitChange[] = [];
  let unchanged = 0;
  const there = new Map(stored.map((limits) => [limits.project, limits]));
  for (const project of [...new Set([...wanted.keys(), ...there.keys()])].sort()) {
    const values = wanted.get(project);
    const old = there.get(project);
    if (old !== undefined && !old.isImported) {
      if (values === undefined) continue;
      leftOut.add(
        `${project === '' ? 'the defaults' : `project ${project}`}: the limits were set by the API, and stay as they are`,
      );
    } else if (values !== undefined && old !== undefined && isSame(values, old)) unchanged += 1;
    else changes.push({ project, values, known: old?.generation ?? null });
  }
  return { changes: changes.toSorted((one, other) => rankOf(one) - rankOf(other)), unchanged, leftOut: [...leftOut] };
}

/**
 * Projects come before the defaults: otherwise the defaults would apply for a while to a project with higher limits. Deletions come last:
 * without any limit the counting of usages would stop and restart.
 */
const rankOf = ({ project, values }: LimitChange): number => (values === undefined ? 2 : project === '' ? 1 : 0);

type Limited = { readonly kind: keyof StoredValues; readonly name: string } | { readonly reason: string };

/** What a limit of this name is of. */
function limitedBy(name: string, classes: ReadonlySet<string>): Limited {
  if (name === 'servers') return { kind: 'consumers', name: anyType };
  const [, className] = /^class:(.+)$/.exec(name) ?? [];
  if (className === undefined) return { reason: 'only class:NAME and servers can be imported' };
  return classes.has(className)
    ? { kind: 'resources', name: className }
    : { reason: `there is no resource class ${className}` };
}

const isSame = (one: StoredValues, other: StoredValues): boolean =>
  (['resources', 'consumers'] as const).every((kind) => {
    const names = Object.keys(one[kind]);
    return (
      names.length === Object.keys(other[kind]).length && names.every((name) => one[kind][name] === other[kind][name])
    );
  });
