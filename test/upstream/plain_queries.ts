import { type PlainQueries, queriesByTheRules } from '../candidates/explanation/naive_explanation.ts';
import { type Part, queryOf, requestOfParts } from '../candidates/explanation/parts.ts';
import { classNames, rootIndex, sharingTrait, type Topology, traitNames } from '../candidates/topology.ts';
import { succeed } from '../races/client.ts';
import { at } from '../support/requests.ts';
import type { UpstreamOnSqlite } from './sqlite.ts';

const minor = 39;

/** A trait of one root alone: root_required asks by it for one tree. */
const ownTrait = (index: number): string => `CUSTOM_ROOT_${index}`;

/** The custom traits that upstream needs for topologies of so many providers. */
export const customTraits = (mostProviders: number): readonly string[] => [
  ...traitNames.filter((name) => name.startsWith('CUSTOM_')),
  ...Array.from({ length: mostProviders }, (_, index) => ownTrait(index)),
];

/** Replaces all that upstream has by a topology. */
export function loadTopology(upstream: UpstreamOnSqlite, topology: Topology): void {
  const text = (value: string) => `'${value}'`;
  const idOf = (table: string, name: string) => `(select id from ${table} where name = ${text(name)})`;
  const row = (table: string, values: Readonly<Record<string, string | number>>): string =>
    `insert into ${table} (${Object.keys(values).join(', ')}) values (${Object.values(values).join(', ')})`;
  const aggregates = [...new Set(topology.flatMap((node) => node.aggregates))];
  const emptied = ['allocations', 'inventories', 'resource_provider_traits', 'resource_provider_aggregates'];
  upstream.write([
    ...[...emptied, 'placement_aggregates', 'resource_providers'].map((table) => `delete from ${table}`),
    ...aggregates.map((uuid, index) => row('placement_aggregates', { id: index + 1, uuid: text(uuid) })),
    ...topology.flatMap(({ uuid, parent, traits, stock, ...node }, index) => {
      const resource_provider_id = index + 1;
      const below = parent === undefined ? {} : { parent_provider_id: parent + 1 };
      const root_provider_id = rootIndex(topology, index) + 1;
      const name = text(`provider ${index}`);
      return [
        row('resource_providers', {
          ...{ id: resource_provider_id, uuid: text(uuid), name, generation: 0, root_provider_id },
          ...below,
        }),
        ...[...traits, ...(parent === undefined ? [ownTrait(index)] : [])].map((trait) =>
          row('resource_provider_traits', { resource_provider_id, trait_id: idOf('traits', trait) }),
        ),
        ...node.aggregates.map((aggregate) =>
          row('resource_provider_aggregates', {
            resource_provider_id,
            aggregate_id: aggregates.indexOf(aggregate) + 1,
          }),
        ),
        ...classNames.flatMap((className) => {
          const inventory = stock[className];
          if (inventory === undefined) return [];
          const resource_class_id = idOf('resource_classes', className);
          const { used, ...fields } = inventory;
          const held = row('allocations', { resource_provider_id, resource_class_id, consumer_id: text(uuid), used });
          return [
            row('inventories', { resource_provider_id, resource_class_id, ...fields }),
            ...(used > 0 ? [held] : []),
          ];
        }),
      ];
    }),
  ]);
}

/** Plain queries to upstream about the topology that it has. */
export function queriesToUpstream({ client }: UpstreamOnSqlite, topology: Topology) {
  const byTheRules = queriesByTheRules(topology);
  const roots = topology.flatMap(({ parent }, index) => (parent === undefined ? [index] : []));
  const placeOf = new Map(topology.map(({ uuid }, index) => [uuid, index]));
  const answers = new Map<string, Promise<unknown>>();
  const counts = { upstream: 0, rules: 0 };
  const get = (path: string): Promise<unknown> => {
    const known = answers.get(path);
    if (known !== undefined) return known;
    counts.upstream += 1;
    const answer = succeed(client, 'GET', path, minor);
    answers.set(path, answer);
    return answer;
  };
  /** The providers that each candidate takes something from. */
  const candidates = async (parts: readonly Part[]): Promise<number[][]> => {
    const answer = await get(`/allocation_candidates?${plainQuery(parts)}`);
    const requests = at(answer, 'allocation_requests') as { allocations: object }[]; // as the API says
    return requests.map(({ allocations }) => Object.keys(allocations).map((uuid) => placeOf.get(uuid) ?? -1));
  };
  /** Upstream refuses a query that asks for no resources. */
  const isRefused = (parts: readonly Part[]): boolean => parts.every(({ kind }) => kind !== 'resource');
  const byTheRulesOr = async <Answer>(rules: () => Answer, parts: readonly Part[], ask: () => Promise<Answer>) => {
    if (!isRefused(parts)) return ask();
    counts.rules += 1;
    return rules();
  };
  const fitsSomewhere: PlainQueries['fitsSomewhere'] = (parts) =>
    byTheRulesOr(
      () => byTheRules.fitsSomewhere(parts) as boolean, // it is no promise there
      parts,
      async () => (await candidates(parts)).length > 0,
    );
  const queries: PlainQueries = {
    fitsSomewhere,
    fitting: (parts) =>
      byTheRulesOr(
        () => byTheRules.fitting(parts) as number, // it is no promise there
        parts,
        async () => {
          const taken = (await candidates(parts)).flat();
          if (taken.length === 0) return 0;
          // A candidate that takes of a provider which does not share is of its tree; for other trees upstream is queried.
          const isSharing = (index: number) => topology[index]?.traits.includes(sharingTrait) === true;
          const certain = new Set(
            taken.filter((index) => !isSharing(index)).map((index) => rootIndex(topology, index)),
          );
          if (!topology.some((_, index) => isSharing(index))) return certain.size;
          const others = roots.filter((root) => !certain.has(root));
          const fits = await Promise.all(others.map((root) => candidates(withOwnTrait(parts, root))));
          return certain.size + fits.filter(({ length }) => length > 0).length;
        },
      ),
    meeting: async (part) => {
      const parameter = part.kind === 'root' ? 'required' : part.parameter.replace(part.suffix ?? '', '');
      const answer = await get(`/resource_providers?${parameter}=${part.value}`);
      const found = (at(answer, 'resource_providers') as { uuid: string; root_provider_uuid: string }[]) // as the API says
        .filter(({ uuid, root_provider_uuid }) => part.kind !== 'root' || uuid === root_provider_uuid)
        .map(({ root_provider_uuid }) => root_provider_uuid);
      return new Set(found).size;
    },
  };
  return { queries, counts, roots: () => get('/resource_providers').then((answer) => rootsIn(answer)) };
}

const rootsIn = (answer: unknown): number =>
  (at(answer, 'resource_providers') as { parent_provider_uuid: string | null }[]) // as the API says
    .filter(({ parent_provider_uuid }) => parent_provider_uuid === null).length;

function withOwnTrait(parts: readonly Part[], root: number): readonly Part[] {
  const own: Part = { parameter: 'root_required', value: ownTrait(root), kind: 'root', suffix: undefined };
  const last = parts.findLastIndex(({ kind }) => kind === 'root');
  return last === -1 ? [...parts, own] : parts.toSpliced(last + 1, 0, own);
}

/** The query of some conditions as upstream takes it: groups without resources must be in some same_subtree, others must exist. */
function plainQuery(parts: readonly Part[]): string {
  const { groups, sameSubtrees } = requestOfParts(parts);
  const subtrees = [
    ...sameSubtrees,
    ...groups
      .filter(({ suffix, resources }) => resources.size === 0 && !sameSubtrees.some((named) => named.has(suffix)))
      .map(({ suffix }) => new Set([suffix])),
  ].map(
    (suffixes): Part => ({
      parameter: 'same_subtree',
      value: [...suffixes].join(','),
      kind: 'subtree',
      suffix: undefined,
    }),
  );
  return queryOf([...parts.filter(({ kind }) => kind !== 'subtree'), ...subtrees]);
}
