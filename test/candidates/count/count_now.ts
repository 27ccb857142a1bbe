import type { Fleet } from '../../../src/fleet/model/fleet.ts';
import { atOnce } from '../../../src/request/turns.ts';
import { type CountOptions, countPlacements, type PlacementCount } from '../../../src/search/count/count.ts';
import type { CandidateRequest } from '../../../src/search/request.ts';

/** Counts without a pause. */
export const countNow = (fleet: Fleet, request: CandidateRequest, options: CountOptions): PlacementCount =>
  atOnce(countPlacements(fleet, request, options));
