import type { Candidate } from '../../src/search/choices.ts';
import type { CandidateRequest } from '../../src/search/request.ts';
import { classNames, type Node, rootIndex, type Topology, traitNames } from './topology.ts';

/** The answer at a microversion as the API documents it, built from objects without any cache. */
export function naiveAnswer(
  topology: Topology,
  request: CandidateRequest,
  candidates: readonly Candidate[],
  version: number,
): object {
  return {
    allocation_requests: candidates.map((candidate) => allocationRequest(request, candidate, version)),
    provider_summaries: Object.fromEntries(
      summarised(topology, candidates, version).map((node) => [node.uuid, summary(topology, request, node, version)]),
    ),
  };
}

function allocationRequest({ groups }: CandidateRequest, candidate: Candidate, version: number): object {
  const allocations: Record<string, { resources: Record<string, number> }> = {};
  const mappings: Record<string, string[]> = {};
  for (const [index, { suffix, resources }] of groups.entries()) {
    const providers = candidate[index]?.providers ?? [];
    mappings[suffix] = [...new Set(providers.map(({ uuid }) => uuid))];
    for (const [at, [name, amount]] of [...resources].entries()) {
      const uuid = providers[suffix === '' ? at : 0]?.uuid ?? '';
      allocations[uuid] ??= { resources: {} };
      const { resources: taken } = allocations[uuid];
      taken[name] = (taken[name] ?? 0) + amount;
    }
  }
  if (version >= 1034) return { allocations, mappings };
  if (version >= 1012) return { allocations };
  const listed = Object.entries(allocations).map(([uuid, each]) => ({ ...each, resource_provider: { uuid } }));
  return { allocations: listed };
}

/**
 * The providers that candidates use, in the order in which these name them; from 1.29 on their whole trees, parents
 * before children.
 */
function summarised(topology: Topology, candidates: readonly Candidate[], version: number): readonly Node[] {
  const used = candidates.flatMap((candidate) => {
    const usedBySome = new Set(
      candidate.flatMap(({ group, providers }) => (group.resources.length > 0 ? providers : [])),
    );
    return candidate.flatMap(({ providers }) => providers.filter((provider) => usedBySome.has(provider)));
  });
  const indexes = [...new Set(used)].map(({ uuid }) => topology.findIndex((node) => node.uuid === uuid));
  const nodes = (each: Iterable<number>) => [...each].flatMap((index) => topology[index] ?? []);
  if (version < 1029) return nodes(indexes);
  const below = (index: number): number[] => [
    index,
    ...topology.flatMap(({ parent }, child) => (parent === index ? below(child) : [])),
  ];
  return nodes([...new Set(indexes.map((index) => rootIndex(topology, index)))].flatMap(below));
}

function summary(topology: Topology, request: CandidateRequest, node: Node, version: number): object {
  const requested = request.groups.flatMap(({ resources }) => [...resources.keys()]);
  const resources = classNames
    .filter((name) => version >= 1027 || requested.includes(name))
    .flatMap((name) => {
      const stock = node.stock[name];
      if (stock === undefined) return [];
      const capacity = Math.trunc((stock.total - stock.reserved) * stock.allocation_ratio);
      return [[name, { capacity, used: stock.used }] as const];
    });
  return {
    resources: Object.fromEntries(resources),
    ...(version >= 1017 && { traits: traitNames.filter((name) => node.traits.includes(name)) }),
    ...(version >= 1029 && {
      parent_provider_uuid: node.parent === undefined ? null : topology[node.parent]?.uuid,
      root_provider_uuid: topology[rootIndex(topology, topology.indexOf(node))]?.uuid,
    }),
  };
}
