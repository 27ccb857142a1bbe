import type { IncomingMessage, Server, ServerResponse } from 'node:http';

/** An answer under way. */
export type Unanswered = {
  readonly response: ServerResponse;
  /** Since when it was seen to wait for its client, by `performance.now()`; infinite where it does not. */
  waitsSinceMs: number;
};

/**
 * Notes the answers of a server that are under way, in no particular order.
 *
 * They are in a list, in which the last takes the place of the one that leaves. A Set that so many join and leave is made anew
 * again and again, and V8 links each to the one that follows it: one that a collection finds in use keeps all that come later,
 * and every request that they hold, until the whole heap is collected. That took a tenth of the CPU time.
 */
export function trackUnanswered(server: Server): readonly Unanswered[] {
  const list: (Unanswered & { place: number })[] = [];
  server.prependListener('request', (_request: IncomingMessage, response: ServerResponse) => {
    const added = { response, waitsSinceMs: Number.POSITIVE_INFINITY, place: list.length };
    list.push(added);
    response.once('close', () => {
      const last = list.pop();
      if (last === undefined || last === added) return;
      list[added.place] = last;
      last.place = added.place;
    });
  });
  return list;
}
