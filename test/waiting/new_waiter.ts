import type { Claim } from '../../src/claims/claim.ts';
import { newWaiter, type Waiter } from '../../src/claims/waiting/waiter.ts';

/** A claim of the project `web` that has just arrived. @param line the line of the claim; null without one */
export const newTestWaiter = (
  process: string,
  line: string | null,
  index = 0,
  claim: Claim = { consumers: [], inventories: [] },
): Waiter =>
  newWaiter(
    claim,
    {
      waitMs: 60_000,
      line: line ?? undefined,
      owner: { projectId: 'web', userId: 'ada' },
      client: 'ada',
      gone: new AbortController().signal,
      authorizeAgain: () => Promise.reject(new Error('it is not its turn')),
    },
    {
      index,
      precedence: {
        isCancelled: () => false,
        isBehind: () => false,
        noteHeldUp: () => {},
        waitingRow: { claim: '', process, projectId: 'web', line, isStored: true },
      },
      leave: () => {},
      resolve: () => {},
      reject: () => {},
    },
  );
