import { type CountOptions, countPlacements, type PlacementCount } from '../../../src/candidates/count/count.ts';
import type { CandidateRequest } from '../../../src/candidates/request.ts';
import type { Fleet } from '../../../src/fleet/fleet.ts';
import { atOnce } from '../../../src/rest/pieces.ts';

/** Counts without a pause. */
export const countNow = (fleet: Fleet, request: CandidateRequest, options: CountOptions): PlacementCount =>
  atOnce(countPlacements(fleet, request, options));
