import { ApiError, type Placement, VersionError } from '../client/index.ts';
import { drainedTrait } from './drain_marks.ts';
import { shellWord } from './shell_word.ts';

/**
 * The UUIDs of providers that are drained. None where that cannot be told: the service is too old for traits, or this user may not ask.
 *
 * @param in_tree any provider of a tree, if only this tree matters
 */
export async function drainedProviders({ providers }: Placement, in_tree?: string): Promise<ReadonlySet<string>> {
  try {
    return new Set((await providers.list({ in_tree, required: [drainedTrait] })).map(({ uuid }) => uuid));
  } catch (error) {
    // The service refuses a trait that it does not know: nothing was ever drained.
    if (error instanceof VersionError || (error instanceof ApiError && [400, 403].includes(error.status))) {
      return new Set();
    }
    throw error;
  }
}

/** How to undo a drain. @param name of any provider of the tree */
export const undrainHint = (name: string): string =>
  `What is drained takes no new claims. "placement undrain ${shellWord(name)}" lifts that, for the whole tree of ${name}.`;
