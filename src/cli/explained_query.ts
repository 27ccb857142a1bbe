import { ApiError, type CandidateQuery, type Explanation, type Placement, VersionError } from '../client/index.ts';

/**
 * Why a query fits nowhere, whatever consumers are where. Undefined if the server is too old, if this user may not ask, or if it
 * fits somewhere.
 */
export async function explainedQuery(placement: Placement, query: CandidateQuery): Promise<Explanation | undefined> {
  const { apart_from: _apart, with: _with, ...asked } = query;
  try {
    const explained = await placement.candidateQuestions.explain(asked);
    return explained.fitting === 0 || explained.fitting === null ? explained : undefined;
  } catch (error) {
    if (error instanceof VersionError || (error instanceof ApiError && error.status === 403)) return undefined;
    throw error;
  }
}
