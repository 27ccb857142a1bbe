import type { Resources, WholeProvider } from '../client/index.ts';
import { capacityOf } from '../client/inventories.ts';

/**
 * What is other of a provider than before, each as a short text, such as `VCPU used 2 → 4 of 32`. Empty if all is as it was.
 *
 * @param nameOf the name of a provider, by its UUID
 */
export function differences(
  old: WholeProvider,
  now: WholeProvider,
  nameOf: (uuid: string) => string,
): readonly string[] {
  const parent = now.parent_provider_uuid;
  const classes = [...new Set([...Object.keys(old.inventories), ...Object.keys(now.inventories)])];
  return [
    ...(old.name === now.name ? [] : [`name ${old.name} → ${now.name}`]),
    ...(old.parent_provider_uuid === parent ? [] : [parent === null ? 'a root now' : `below ${nameOf(parent)} now`]),
    ...classes.flatMap((name) => inventoryDifference(name, old.inventories[name], now.inventories[name])),
    ...classes.flatMap((name) => usageDifference(name, old.usages, now)),
    ...listChanges('', old.traits, now.traits),
    ...listChanges('aggregate ', old.aggregates, now.aggregates),
  ];
}

type WholeInventory = WholeProvider['inventories'][string];

function inventoryDifference(
  name: string,
  old: WholeInventory | undefined,
  now: WholeInventory | undefined,
): readonly string[] {
  if (now === undefined) return [`no ${name} any more`];
  if (old === undefined) return [`${name} ${capacityOf(now)} new`];
  const fields = Object.keys(now) as readonly (keyof WholeInventory)[]; // the server sends no other fields
  const changed = fields.filter((field) => old[field] !== now[field]);
  return changed.map((field) => `${name} ${field} ${old[field]} → ${now[field]}`);
}

function usageDifference(name: string, old: Resources, { usages, inventories }: WholeProvider): readonly string[] {
  const [before, after, inventory] = [old[name] ?? 0, usages[name] ?? 0, inventories[name]];
  if (before === after || inventory === undefined) return [];
  return [`${name} used ${before} → ${after} of ${capacityOf(inventory)}`];
}

/** What a list gets and loses. */
export type ListDifference = { readonly added: readonly string[]; readonly removed: readonly string[] };

const asItIs = (text: string): string => text;

/** Compares two lists, whose order does not matter. @param form two texts with the same form are the same */
export function listDifference(before: readonly string[], after: readonly string[], form = asItIs): ListDifference {
  const [had, has] = [new Set(before.map(form)), new Set(after.map(form))];
  return {
    added: after.filter((one) => !had.has(form(one))),
    removed: before.filter((one) => !has.has(form(one))),
  };
}

/** Whether two lists have the same texts, in any order. @param form two texts with the same form are the same */
export function isSameList(before: readonly string[], after: readonly string[], form = asItIs): boolean {
  const { added, removed } = listDifference(before, after, form);
  return added.length === 0 && removed.length === 0;
}

/** What a list gets, each with a plus, and what it loses, each with a minus. */
export function listChanges(what: string, old: readonly string[], now: readonly string[]): readonly string[] {
  const { added, removed } = listDifference(old, now);
  return [...added.map((one) => `+${what}${one}`), ...removed.map((one) => `-${what}${one}`)];
}

type ListOperation = (
  old: readonly string[],
  named: readonly string[],
  form?: (text: string) => string,
) => readonly string[];

/** How `set`, `add` and `remove` change the traits or the aggregates of a provider. Two texts with the same form are the same. */
export const listOperations: Readonly<Record<'set' | 'add' | 'remove', ListOperation>> = {
  set: (_old, named) => [...new Set(named)],
  add: (old, named, form) => [...new Set([...old, ...listDifference(old, named, form).added])],
  remove: (old, named, form) => listDifference(old, named, form).removed,
};
