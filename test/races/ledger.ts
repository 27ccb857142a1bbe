import { type Amounts, type Arena, partsOf } from './arena.ts';
import type { WriteRequest } from './requests.ts';

/** The allocations of a consumer. A consumer without allocations has no generation. */
export type Holding = { readonly amounts: Amounts; readonly generation: number | null };

const nothing: Holding = { amounts: new Map(), generation: null };

/** A write that has no answer yet. */
export type Pending = {
  readonly request: WriteRequest;
  readonly before: readonly Holding[];
  readonly after: readonly Holding[];
  /** By slot, the most that all other consumers may have had at any moment since the write began. */
  readonly peaks: Map<string, number>;
};

/**
 * What the answers say about consumers that only one client writes, one write after the other. So the allocations of
 * each of them are known exactly, and also the highest possible usage of a slot.
 */
export type Ledger = {
  holdingOf(uuid: string): Holding;
  readonly holdings: ReadonlyMap<string, Holding>;
  begin(request: WriteRequest): Pending;
  /**
   * `undefined`: the connection broke, and the result is unknown. Such consumers must be `resolve`d before they are
   * written again.
   */
  end(pending: Pending, written: boolean | undefined): void;
  /** By how much the generations of all providers together must have grown. */
  readonly bumps: number;
  /** Writes with an unknown result. */
  readonly unknown: readonly Pending[];
  /** Sets the result of the oldest unknown write. */
  resolve(written: boolean): void;
};

export function openLedger(arena: Arena): Ledger {
  const holdings = new Map<string, Holding>();
  /**
   * The highest possible usage of a slot now. A consumer with an open write counts with the larger of its old and new
   * amount.
   */
  const most = new Map([...arena.capacities.keys()].map((slot) => [slot, 0]));
  const pending = new Set<Pending>();
  const unknown: Pending[] = [];
  let bumps = 0;
  const holdingOf = (uuid: string): Holding => holdings.get(uuid) ?? nothing;

  const raise = (slot: string, by: number): void => {
    most.set(slot, (most.get(slot) ?? 0) + by);
  };
  const notePeaks = (): void => {
    for (const each of pending) {
      for (const [slot, peak] of each.peaks) {
        const others = (most.get(slot) ?? 0) - share(each, slot);
        if (others > peak) each.peaks.set(slot, others);
      }
    }
  };
  const settle = ({ request, before, after }: Pending, written: boolean): void => {
    if (written) {
      request.wishes.forEach(({ uuid }, index) => {
        holdings.set(uuid, after[index] ?? nothing);
      });
      bumps += visited(request, before).size;
    }
  };

  return {
    holdingOf,
    holdings,
    unknown,
    get bumps() {
      return bumps;
    },
    begin: (request) => {
      const before = request.wishes.map(({ uuid }) => holdingOf(uuid));
      const after = request.wishes.map(({ wanted }, index): Holding => {
        const generation = before[index]?.generation ?? null;
        return wanted.size === 0 ? nothing : { amounts: wanted, generation: (generation ?? 0) + 1 };
      });
      const slots = request.wishes.flatMap(({ wanted }) => [...wanted.keys()]);
      const mine: Pending = { request, before, after, peaks: new Map(slots.map((slot) => [slot, 0])) };
      for (const slot of slotsOf(mine)) raise(slot, share(mine, slot) - sum(before, slot));
      pending.add(mine);
      notePeaks();
      return mine;
    },
    end: (mine, written) => {
      pending.delete(mine);
      if (written === undefined) {
        unknown.push(mine);
        return;
      }
      settle(mine, written);
      for (const slot of slotsOf(mine)) raise(slot, sum(written ? mine.after : mine.before, slot) - share(mine, slot));
    },
    resolve: (written) => {
      const mine = unknown.shift();
      if (mine === undefined) throw new Error('No write is unknown.');
      settle(mine, written);
      for (const slot of slotsOf(mine)) raise(slot, sum(written ? mine.after : mine.before, slot) - share(mine, slot));
    },
  };
}

const sum = (holdings: readonly Holding[], slot: string): number =>
  holdings.reduce((total, { amounts }) => total + (amounts.get(slot) ?? 0), 0);

const share = ({ before, after }: Pending, slot: string): number => Math.max(sum(before, slot), sum(after, slot));

const slotsOf = ({ before, after }: Pending): ReadonlySet<string> =>
  new Set([...before, ...after].flatMap(({ amounts }) => [...amounts.keys()]));

/** The providers whose generation a write raises: those of its allocations, and those of consumers that it empties. */
function visited(request: WriteRequest, before: readonly Holding[]): ReadonlySet<string> {
  if (request.method === 'DELETE') return new Set();
  return new Set(
    request.wishes.flatMap(({ wanted }, index) =>
      [...(wanted.size > 0 ? wanted : (before[index] ?? nothing).amounts).keys()].map((slot) => partsOf(slot)[0]),
    ),
  );
}

/** Whether a refusal for lack of room can have been right at some moment of the write. */
export function canHaveBeenFull({ request, peaks }: Pending, arena: Arena, slack: (slot: string) => number): boolean {
  return [...peaks].some(([slot, others]) => {
    const wanted = request.wishes.reduce((total, wish) => total + (wish.wanted.get(slot) ?? 0), 0);
    return others + slack(slot) + wanted > (arena.capacities.get(slot) ?? 0);
  });
}
