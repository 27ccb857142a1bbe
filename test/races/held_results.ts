import type { KyselyPlugin } from 'kysely';

/** Holds back the results of statements while it is closed. */
export function openGate() {
  let opened: PromiseWithResolvers<void> | undefined;
  let reached: (() => void) | undefined;
  const plugin: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      reached?.();
      await opened?.promise;
      return result;
    },
  };
  return {
    plugin,
    open: () => opened?.resolve(),
    /** Fails what the gate holds, and opens it. */
    fail: (error: Error) => {
      opened?.reject(error);
      opened = undefined;
    },
    /** Begins something, and returns when the gate, which is closed then, holds its first result. */
    whileClosed: async <T>(begin: () => Promise<T>): Promise<Promise<T>[]> => {
      opened = Promise.withResolvers();
      const held = Promise.withResolvers<void>();
      reached = held.resolve;
      const begun = begin();
      await held.promise;
      return [begun];
    },
  };
}
