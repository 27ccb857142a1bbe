import type { Query } from '../races/server_process.ts';

/** What a consumer must have by the answers: one VCPU of a host (of any, if it was placed by a query), or nothing. */
type Entry = { state: 'held' | 'gone' | 'held or gone'; host: string | undefined };

/** What the answers say. Each consumer is written by one client, one request after the other. */
export type Ledger = {
  /** A claim was answered 204, or its answer is missing. */
  claimed(consumer: string, host: string | undefined, isAcknowledged: boolean): void;
  /** A deletion was answered 204, or its answer is missing. */
  released(consumer: string, isAcknowledged: boolean): void;
  /** The consumer's term is over at that time, by `Date.now()`. */
  endsAt(consumer: string, atMs: number): void;
  /** A longer term was answered 200, or its answer is missing. */
  renewed(consumer: string, isAcknowledged: boolean): void;
  /** A write of a host's inventory was answered 200, or its answer is missing. Totals only rise. */
  stocked(host: string, total: number, isAcknowledged: boolean): void;
  /** Whether a host may have this total, which was read. If so, no smaller one is possible from now on. */
  isPossible(host: string, total: unknown): boolean;
  /**
   * Compares with the database while no request is under way, and settles what was unknown.
   *
   * @returns what is wrong
   */
  complaints(query: Query): Promise<readonly string[]>;
};

export function openLedger(): Ledger {
  const entries = new Map<string, Entry>();
  const ends = new Map<string, number>();
  /** By host: the totals that it may have; the first one was acknowledged or read. */
  const stocks = new Map<string, readonly number[]>();
  const isPossible = (host: string, total: unknown): boolean => {
    const possible = stocks.get(host) ?? [];
    const index = possible.indexOf(Number(total));
    if (index > 0) stocks.set(host, possible.slice(index));
    return index !== -1;
  };
  return {
    claimed: (consumer, host, isAcknowledged) => {
      entries.set(consumer, { state: isAcknowledged ? 'held' : 'held or gone', host });
    },
    released: (consumer, isAcknowledged) => {
      const entry = entries.get(consumer);
      if (entry !== undefined) entry.state = isAcknowledged ? 'gone' : 'held or gone';
    },
    endsAt: (consumer, atMs) => {
      ends.set(consumer, atMs);
    },
    renewed: (consumer, isAcknowledged) => {
      ends.delete(consumer);
      const entry = entries.get(consumer);
      if (entry !== undefined) entry.state = isAcknowledged ? 'held' : 'held or gone';
    },
    stocked: (host, total, isAcknowledged) => {
      stocks.set(host, isAcknowledged ? [total] : [...(stocks.get(host) ?? []), total]);
    },
    isPossible,
    complaints: async (query) => {
      const complaints: string[] = [];
      const held = new Map<string, string[]>();
      const rows = await query(`select a.consumer_id as consumer, p.uuid as host, a.used from allocations a
        join resource_providers p on p.id = a.resource_provider_id`);
      for (const { consumer, host, used } of rows) {
        const hosts = held.get(String(consumer)) ?? [];
        hosts.push(`${host} ${used}`);
        held.set(String(consumer), hosts);
        if (!entries.has(String(consumer))) complaints.push(`no client claimed for ${consumer}`);
      }
      for (const [consumer, entry] of entries) {
        const has = held.get(consumer)?.join() ?? 'nothing';
        const isRight = entry.host === undefined ? / 1$/.test(has) : has === `${entry.host} 1`;
        const isOver = (ends.get(consumer) ?? Number.POSITIVE_INFINITY) < Date.now();
        const wanted = isOver ? 'gone' : entry.state;
        const isGone = has === 'nothing';
        if (wanted === 'held or gone' ? isGone || isRight : wanted === 'gone' ? isGone : isRight) {
          if (isGone) entries.delete(consumer);
          else entry.state = 'held';
          continue;
        }
        complaints.push(`consumer ${consumer} must be ${wanted} (${entry.host ?? 'by query'}) and has ${has}`);
      }
      const totals = await query(`select p.uuid as host, i.total from inventories i
        join resource_providers p on p.id = i.resource_provider_id`);
      for (const [host, possible] of stocks) {
        const total = totals.find((row) => row.host === host)?.total;
        if (!isPossible(host, total))
          complaints.push(`host ${host} has ${total}, and it must be ${possible.join(' or ')}`);
        stocks.set(host, [Number(total)]);
      }
      return complaints;
    },
  };
}
