import { listDifference } from './differences.ts';

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
