import { failureKind } from '../../engine/failure_kind.ts';

/**
 * The outcome of a change of a provider. `changed`: nothing was done, since the provider is no longer as it was judged.
 */
export type ChangeOutcome = 'done' | 'changed' | 'name taken';

/**
 * The outcome of a change that may give a provider a name.
 *
 * @param change resolves to whether it was done. A deadlock or a serialization failure counts as `changed`: nothing was
 *   done, and another transaction has changed the rows that it was judged by.
 */
export async function changeOutcome(change: Promise<boolean>): Promise<ChangeOutcome> {
  try {
    return (await change) ? 'done' : 'changed';
  } catch (error) {
    const kind = failureKind(error);
    if (kind === 'taken') return 'name taken';
    if (kind === 'lost race') return 'changed';
    throw error;
  }
}
