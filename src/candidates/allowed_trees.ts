import type { Provider } from '../fleet/provider.ts';
import type { CandidateRequest } from './request.ts';

/** Which trees may be used, by their roots. */
export type AllowedTrees = {
  /** No other ones; undefined for all. */
  readonly only: ReadonlySet<Provider> | undefined;
  readonly not: ReadonlySet<Provider>;
};

export const allTrees: AllowedTrees = { only: undefined, not: new Set() };

/** Whether a tree may be used. */
export const isAllowed = ({ only, not }: AllowedTrees, root: Provider): boolean =>
  (only === undefined || only.has(root)) && !not.has(root);

/**
 * The trees that `with` and `apart_from` of a request leave.
 *
 * @param treesOf the roots of the trees in which a consumer holds something; it is told the UUID as the client spells it
 */
export function treesBeside(
  request: Pick<CandidateRequest, 'with' | 'apartFrom'>,
  treesOf: (consumer: string) => Iterable<Provider>,
): AllowedTrees {
  const together = request.with;
  return {
    only: together.length === 0 ? undefined : new Set(together.flatMap((consumer) => [...treesOf(consumer)])),
    not: new Set(request.apartFrom.flatMap((consumer) => [...treesOf(consumer)])),
  };
}
