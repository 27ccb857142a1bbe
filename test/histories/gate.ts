import { setTimeout as sleep } from 'node:timers/promises';
import type { Connection } from './connection.ts';

/** Connections to some servers, at which requests can be held or sent to one server only. */
export type Gate = {
  readonly connections: readonly Connection[];
  /** Holds all requests from now on. Resolves when those under way are answered. */
  hold(): Promise<void>;
  /** Lets requests through again: to their servers, or all to this one. */
  open(only?: Connection): void;
};

/** @param servers to which each of the connections leads */
export function gateBefore(servers: readonly Connection[]): Gate {
  let underWay = 0;
  let opened: PromiseWithResolvers<void> | undefined;
  let only: Connection | undefined;
  return {
    connections: servers.map((server) => ({
      send: async (request) => {
        while (opened !== undefined) await opened.promise;
        underWay += 1;
        try {
          return await (only ?? server).send(request);
        } finally {
          underWay -= 1;
        }
      },
      close: () => {},
    })),
    hold: async () => {
      opened ??= Promise.withResolvers<void>();
      while (underWay > 0) await sleep(1);
    },
    open: (server) => {
      only = server;
      opened?.resolve();
      opened = undefined;
    },
  };
}
