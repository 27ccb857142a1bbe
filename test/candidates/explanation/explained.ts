import { conditionsOf } from '../../../src/api/candidates/conditions.ts';
import { parseCandidateRequest } from '../../../src/api/candidates/query.ts';
import type { Fleet } from '../../../src/fleet/model/fleet.ts';
import { placementService } from '../../../src/placement/microversions.ts';
import { newestOf } from '../../../src/placement/versions.ts';
import { atOnce } from '../../../src/request/turns.ts';
import { parseQuery } from '../../../src/rest/query_string.ts';
import { type ExplainOptions, type Explanation, explain } from '../../../src/search/explanation/explain.ts';

/** The version of the queries. */
export const latest = newestOf(placementService);

/** The explanation of a query in its text form. */
export function explained(fleet: Fleet, text: string, options: Partial<ExplainOptions> = {}): Explanation {
  const query = parseQuery(text);
  return atOnce(
    explain(fleet, conditionsOf(query, parseCandidateRequest(query, latest)), { nearest: 100, ...options }),
  );
}

/** The numbers of its conditions. */
export const figuresOf = ({ conditions }: Explanation) =>
  conditions.map(({ condition: { parameter, value }, ...numbers }) => ({ parameter, value, ...numbers }));
