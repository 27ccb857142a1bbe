import type { Fleet } from '../../src/fleet/model/fleet.ts';
import { atOnce } from '../../src/request/turns.ts';
import type { Candidate } from '../../src/search/choices.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import { openSearch, resolveForSearch, type SearchOptions } from '../../src/search/search.ts';

/**
 * The candidates of a search without an `await` in between.
 *
 * @throws ApiError 400 for classes and traits that do not exist
 */
export const search = (
  fleet: Fleet,
  request: CandidateRequest,
  options: Omit<SearchOptions, 'turns'>,
): Iterable<Candidate> =>
  Iterator.from(openSearch(fleet, atOnce(resolveForSearch(fleet, request)), options).candidates).filter(
    (candidate) => candidate !== undefined,
  );
