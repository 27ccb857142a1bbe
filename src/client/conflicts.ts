import { isConcurrentUpdate } from './errors.ts';
import { pause } from './send.ts';

/** How often to retry after a conflict. */
export type ConflictOptions = {
  /** The largest number of attempts. Default: 10. */
  readonly attempts?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** The errors after which to read and write again. Default: `isConcurrentUpdate`. */
  readonly isConflict?: ((error: unknown) => boolean) | undefined;
};

/**
 * The wait after a conflict is random, up to this time, which doubles with each attempt. So writers do not collide
 * again.
 */
const firstWaitMs = 20;
const longestWaitMs = 1_000;

/**
 * Reads and writes. If the write is refused because something has changed in between, it reads and writes again.
 *
 * ```ts
 * await retryConflicts(async () => {
 *   const { traits, resource_provider_generation } = await placement.providerTraits.show(host);
 *   await placement.providerTraits.set(host, { traits: [...traits, 'CUSTOM_FAST'], resource_provider_generation });
 * });
 * ```
 *
 * @param readAndWrite gets the number of the attempt, from 1 on; each time it must read again the data that its write
 * is based on
 * @returns what `readAndWrite` resolved with
 * @throws every error of `readAndWrite` that is not such a conflict, and the last conflict
 */
export async function retryConflicts<Result>(
  readAndWrite: (attempt: number) => Promise<Result>,
  { attempts = 10, signal, isConflict = isConcurrentUpdate }: ConflictOptions = {},
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    try {
      return await readAndWrite(attempt);
    } catch (error) {
      if (attempt >= attempts || !isConflict(error)) throw error;
    }
    const waitMs = Math.random() * Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1));
    await pause(waitMs, signal);
  }
}
