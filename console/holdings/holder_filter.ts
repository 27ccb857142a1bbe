import { urlOf } from '../route.tsx';

/** Which holders are shown, by the URL of the view. A missing condition is empty. */
export type HolderFilter = {
  readonly project: string;
  readonly user: string;
  readonly class: string;
  /** The UUID or the name of a provider. */
  readonly provider: string;
  /** `tree`: holdings of any provider in the tree of this one. */
  readonly in: string;
  /** The page begins after the consumer with this UUID. */
  readonly after: string;
  /** `project`, `user` or `type`: holdings are summed by it. */
  readonly sum: string;
  /** A column by which the rows or the sums are sorted, with `-` before it where the largest comes first. */
  readonly sort: string;
};

/** Reads the query of a URL. */
export function holderFilterOf(query: URLSearchParams): HolderFilter {
  const value = (name: keyof HolderFilter) => query.get(name) ?? '';
  return {
    project: value('project'),
    user: value('user'),
    class: value('class'),
    provider: value('provider'),
    in: value('in'),
    after: value('after'),
    sum: value('sum'),
    sort: value('sort'),
  };
}

/** The URL that shows these holders. */
export const urlOfHoldings = (filter: Partial<HolderFilter>): string => urlOf('holdings', undefined, filter);

/** Whether the holders of the whole service are shown. */
export const isUnfiltered = ({ after: _, sum: __, sort: ___, ...filter }: HolderFilter): boolean =>
  Object.values(filter).every((value) => value === '');
