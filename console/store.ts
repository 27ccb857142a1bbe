import { useEffect, useState } from 'preact/hooks';

/** A value; views that show it are rendered again when it changes. */
export type Store<T> = {
  get(): T;
  set(value: T): void;
  /** Calls back after each change. @returns a function that stops it */
  subscribe(changed: () => void): () => void;
};

/** Makes a store. */
export function createStore<T>(initial: T): Store<T> {
  let value = initial;
  const subscribers = new Set<() => void>();
  return {
    get: () => value,
    set: (next) => {
      if (Object.is(next, value)) return;
      value = next;
      for (const changed of [...subscribers]) changed();
    },
    subscribe: (changed) => {
      subscribers.add(changed);
      return () => subscribers.delete(changed);
    },
  };
}

/** The value of a store; the component is shown again when it changes. */
export function useStore<T>(store: Store<T>): T {
  const [value, setValue] = useState(() => ({ is: store.get() }));
  useEffect(() => {
    const changed = () => setValue((before) => (Object.is(before.is, store.get()) ? before : { is: store.get() }));
    changed(); // it may have changed before this effect
    return store.subscribe(changed);
  }, [store]);
  return value.is;
}
