import { anyTree, type CandidateRequest, type RequestGroup } from '../../src/search/request.ts';

/** A group that asks for these amounts of resource classes, and for nothing else unless `more` does. */
export const groupOf = (
  suffix: string,
  resources: Readonly<Record<string, number>>,
  more: Partial<RequestGroup> = {},
): RequestGroup => ({
  suffix,
  resources: new Map(Object.entries(resources)),
  traits: { required: [], forbidden: [] },
  aggregates: { required: [], forbidden: [] },
  inTree: undefined,
  ...more,
});

/** A request of these groups, with nothing between them unless `more` says so. */
export const requestOf = (groups: readonly RequestGroup[], more: Partial<CandidateRequest> = {}): CandidateRequest => ({
  groups,
  limit: undefined,
  isolate: false,
  rootTraits: { required: [], forbidden: [] },
  sameSubtrees: [],
  nested: true,
  ...anyTree,
  ...more,
});
