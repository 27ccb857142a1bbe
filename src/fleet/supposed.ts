import type { Fleet } from './fleet.ts';
import { type Effect, showEffects } from './own_writes.ts';
import type { Provider, TreeFindings } from './provider.ts';

/** Usage that the fleet shows for a time in which nothing is awaited, so that no request sees it. */
export type Supposition = {
  /** Shows effects in addition. */
  add(effects: readonly Effect[]): void;
  /** Takes back all that was shown. */
  end(): void;
};

/**
 * Lets the fleet show usage that is not there, such as that of claims which are not written yet. It must end before
 * anything is awaited. Of several suppositions, the one that began last must end first.
 */
export function suppose(fleet: Fleet): Supposition {
  const shown: Effect[] = [];
  /** What was cached with the trees before: it is right again when the supposition ends. */
  const cached = new Map<Provider, TreeFindings | undefined>();
  return {
    add(effects) {
      for (const { providerId } of effects) {
        const root = fleet.byId.get(providerId)?.root;
        if (root !== undefined && !cached.has(root)) cached.set(root, root.findings);
      }
      showEffects(fleet, { effects }, 1);
      shown.push(...effects);
    },
    end() {
      showEffects(fleet, { effects: shown }, -1);
      for (const [root, findings] of cached) root.findings = findings;
      shown.length = 0;
      cached.clear();
    },
  };
}
