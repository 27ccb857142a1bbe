import type { Amounts } from './arena.ts';

/**
 * What the answers say about consumers that all clients write. It is not known which of several simultaneous writes was
 * the last, but it was one of them.
 */
export type SharedConsumers = {
  /** Consumers that are written only with a generation that was read, and never deleted. */
  readonly guarded: readonly string[];
  /** Consumers that are written in any way. */
  readonly open: readonly string[];
  /** The present moment, for `written`. */
  now(): number;
  /** Called after a write was answered 204. */
  written(
    uuid: string,
    write: { readonly began: number; readonly generation: number | null; readonly amounts: Amounts },
  ): void;
  /** What is wrong with the allocations of a consumer, if anything. */
  complaint(uuid: string, amounts: Amounts, generation: number | null): string | undefined;
};

type Write = {
  readonly began: number;
  readonly ended: number;
  readonly generation: number | null;
  readonly amounts: Amounts;
};

export function openSharedConsumers(guarded: readonly string[], open: readonly string[]): SharedConsumers {
  const writes = new Map<string, Write[]>();
  let clock = 0;
  const writesOf = (uuid: string): Write[] => {
    const known = writes.get(uuid) ?? [];
    writes.set(uuid, known);
    return known;
  };
  return {
    guarded,
    open,
    now: () => ++clock,
    written: (uuid, write) => {
      writesOf(uuid).push({ ...write, ended: ++clock });
    },
    complaint: (uuid, amounts, generation) => {
      const all = writesOf(uuid);
      const lastBegan = Math.max(0, ...all.map(({ began }) => began));
      const last = all.filter(({ ended }) => ended > lastBegan);
      if (all.length === 0 ? amounts.size > 0 : !last.some((write) => isSame(write.amounts, amounts))) {
        return `has ${show(amounts)}, but the last writes gave it ${last.map((write) => show(write.amounts)).join(' or ')}`;
      }
      if (!guarded.includes(uuid)) return undefined;
      const known = all.map((write) => write.generation ?? 0).sort((a, b) => a - b);
      if (known.some((each, index) => each !== index)) return `was written by these generations: ${known.join(', ')}`;
      return generation === (all.length || null)
        ? undefined
        : `has generation ${generation} after ${all.length} writes`;
    },
  };
}

const show = (amounts: Amounts): string => JSON.stringify([...amounts].sort());
const isSame = (a: Amounts, b: Amounts): boolean => show(a) === show(b);
