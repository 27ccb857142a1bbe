import { setTimeout as sleep } from 'node:timers/promises';
import { isConcurrentUpdate } from './errors.ts';

/** How long conflicts are tried again. */
export type ConflictOptions = {
  /** How often it is tried at most. Default: 10. */
  readonly attempts?: number | undefined;
  readonly signal?: AbortSignal | undefined;
};

/** The wait after a conflict is random up to this, doubling each time, so that writers that met do not meet again. */
const firstWaitMs = 20;
const longestWaitMs = 1_000;

/**
 * Reads and writes, and does both again where the write was refused because something had changed in between.
 *
 * ```ts
 * await retryConflicts(async () => {
 *   const { traits, resource_provider_generation } = await placement.providerTraits.show(host);
 *   await placement.providerTraits.set(host, { traits: [...traits, 'CUSTOM_FAST'], resource_provider_generation });
 * });
 * ```
 *
 * @param readAndWrite is told the number of its attempt, from 1 on; it must read what it writes upon each time
 * @returns what `readAndWrite` resolved with
 * @throws what it throws that is no such conflict, and the last conflict
 */
export async function retryConflicts<Result>(
  readAndWrite: (attempt: number) => Promise<Result>,
  { attempts = 10, signal }: ConflictOptions = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await readAndWrite(attempt);
    } catch (error) {
      if (attempt >= attempts || !isConcurrentUpdate(error)) throw error;
    }
    const waitMs = Math.random() * Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1));
    await sleep(waitMs, undefined, signal === undefined ? {} : { signal }).catch(() => signal?.throwIfAborted());
  }
}
