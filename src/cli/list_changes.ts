type ListChange = (old: readonly string[], given: readonly string[]) => readonly string[];

/** What `set`, `add` and `remove` make of the traits, or of the aggregates, that a provider has. */
export const listChanges: Readonly<Record<'set' | 'add' | 'remove', ListChange>> = {
  set: (_old, given) => [...new Set(given)],
  add: (old, given) => [...new Set([...old, ...given])],
  remove: (old, given) => old.filter((one) => !given.includes(one)),
};
