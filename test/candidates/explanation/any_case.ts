import fc from 'fast-check';
import type { CandidateRequest } from '../../../src/search/request.ts';
import { crowdedRequest, crowdedTree } from '../crowded.ts';
import { anyRequest } from '../random_request.ts';
import { anyTopology } from '../random_topology.ts';

/** A query names a group only by what it asks for. */
export const isWritable = ({ groups, sameSubtrees }: CandidateRequest): boolean => {
  const suffixes = new Set(groups.map(({ suffix }) => suffix));
  return (
    groups.every(
      ({ resources, traits, aggregates, inTree }) =>
        resources.size + traits.required.length + traits.forbidden.length > 0 ||
        aggregates.required.length + aggregates.forbidden.length > 0 ||
        inTree !== undefined,
    ) && sameSubtrees.every((named) => named.isSubsetOf(suffixes))
  );
};

/** A fleet, and a query with any of the parameters of 1.39. */
export const anyCase = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.tuple(anyTopology, anyRequest.map((request) => ({ ...request, nested: true })).filter(isWritable)),
  },
  { weight: 1, arbitrary: fc.tuple(crowdedTree, crowdedRequest) },
);
