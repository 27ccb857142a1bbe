type ListChange = (old: readonly string[], given: readonly string[]) => readonly string[];

/** How `set`, `add` and `remove` change the traits or the aggregates of a provider. */
export const listChanges: Readonly<Record<'set' | 'add' | 'remove', ListChange>> = {
  set: (_old, given) => [...new Set(given)],
  add: (old, given) => [...new Set([...old, ...given])],
  remove: (old, given) => old.filter((one) => !given.includes(one)),
};
