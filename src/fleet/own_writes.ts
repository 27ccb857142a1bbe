import type { Fleet } from './fleet.ts';
import { inventoryOf } from './provider.ts';

/** A committed write of this process that the fleet shows already, and what it shows of it. */
export type OwnWrite = {
  /** The transaction, as PostgreSQL's text form of `xid8`. */
  readonly xid: string;
  readonly effects: readonly Effect[];
};

/** How much higher a write made a provider's generation, and its usages by class id. */
export type Effect = {
  readonly providerId: number;
  readonly bump: number;
  readonly used: readonly { readonly classId: number; readonly delta: number }[];
};

/** Shows what a write did, or takes it back. */
export function showEffects(fleet: Fleet, { effects }: OwnWrite, sign: 1 | -1): void {
  for (const { providerId, bump, used } of effects) {
    const provider = fleet.byId.get(providerId);
    if (provider === undefined) continue;
    provider.generation += sign * bump;
    provider.root.findings = undefined;
    for (const { classId, delta } of used) {
      const inventory = inventoryOf(provider, classId);
      if (inventory !== undefined) inventory.used += sign * delta;
    }
  }
}

/**
 * Whether a snapshot sees a committed transaction.
 *
 * @param snapshot PostgreSQL's text form of `pg_snapshot`: `xmin:xmax:xip,xip,...`
 */
export function sees(snapshot: string, xid: string): boolean {
  const [xmin = '0', xmax = '0', underWay = ''] = snapshot.split(':');
  if (BigInt(xid) < BigInt(xmin)) return true;
  return BigInt(xid) < BigInt(xmax) && !underWay.split(',').includes(xid);
}
