import { spellingsOf } from '../../placement/uuid.ts';
import { aggregatesOf, parseTraits, type Query } from '../../rest/query_string.ts';
import type { Condition } from '../../search/conditions.ts';
import type { CandidateRequest, RequestGroup } from '../../search/request.ts';
import { strip } from '../../text/strings.ts';

/**
 * The conditions of a query. First those of the groups, in the order in which the query names the groups, and in each
 * group resources, required, member_of and in_tree; then those of the whole request. A repeated `required` counts with
 * all its values, as from microversion 1.39 on.
 *
 * @param request the same query, parsed
 */
export function conditionsOf(query: Query, request: CandidateRequest): readonly Condition[] {
  return [
    ...request.groups.flatMap((group) => conditionsOfGroup(query, group)),
    ...query.all('root_required').flatMap((text) =>
      text.split(',').map((clause): Condition => {
        const value = strip(clause);
        const { required, forbidden } = parseTraits(value, {
          allowForbidden: true,
          allowAny: false,
          parameter: 'root_required',
        });
        return { parameter: 'root_required', value, kind: 'root', required: required.flat(), forbidden };
      }),
    ),
    ...(request.isolate ? [{ parameter: 'group_policy', value: 'isolate', kind: 'isolate' } as const] : []),
    ...query.all('same_subtree').map((value, index): Condition => {
      return { parameter: 'same_subtree', value, kind: 'subtree', suffixes: request.sameSubtrees[index] ?? new Set() };
    }),
  ];
}

function conditionsOfGroup(query: Query, { suffix, resources, inTree }: RequestGroup): readonly Condition[] {
  const parameter = (name: string): string => `${name}${suffix}`;
  const clauses = query
    .all(parameter('required'))
    .flatMap((value) => (value.startsWith('in:') ? [value] : value.split(',').map(strip)));
  return [
    ...[...resources].map(([name, amount]): Condition => {
      return { parameter: parameter('resources'), value: `${name}:${amount}`, kind: 'resource', suffix, name, amount };
    }),
    ...clauses.map((value): Condition => {
      const traits = parseTraits(value, { allowForbidden: true, allowAny: true, parameter: parameter('required') });
      return { parameter: parameter('required'), value, kind: 'trait', suffix, traits };
    }),
    ...query.all(parameter('member_of')).map((value): Condition => {
      const uuids = aggregatesOf(value, parameter('member_of')).flatMap(spellingsOf);
      const aggregates = value.startsWith('!')
        ? { required: [], forbidden: uuids }
        : { required: [uuids], forbidden: [] };
      return { parameter: parameter('member_of'), value, kind: 'aggregate', suffix, aggregates };
    }),
    ...query.all(parameter('in_tree')).map((value): Condition => {
      return { parameter: parameter('in_tree'), value: strip(value), kind: 'tree', suffix, uuids: inTree ?? [] };
    }),
  ];
}
