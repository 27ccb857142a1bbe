type ListOperation = (old: readonly string[], named: readonly string[]) => readonly string[];

/** How `set`, `add` and `remove` change the traits or the aggregates of a provider. */
export const listOperations: Readonly<Record<'set' | 'add' | 'remove', ListOperation>> = {
  set: (_old, named) => [...new Set(named)],
  add: (old, named) => [...new Set([...old, ...named])],
  remove: (old, named) => old.filter((one) => !named.includes(one)),
};
