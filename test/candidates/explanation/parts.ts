import { anyTree, type CandidateRequest, type RequestGroup } from '../../../src/search/request.ts';

/** One condition as it stands in a query, and how it is taken out of a request. */
export type Part = {
  readonly parameter: string;
  readonly value: string;
  readonly suffix: string | undefined;
  readonly kind: 'resource' | 'trait' | 'aggregate' | 'tree' | 'root' | 'isolate' | 'subtree';
};

/**
 * The conditions of a request, in the order in which an explanation tells them, by the letter of the contract: what is
 * wanted is written down here, and not read from a query.
 */
export function partsOf(request: CandidateRequest): readonly Part[] {
  const ofGroup = ({ suffix, resources, traits, aggregates, inTree }: RequestGroup): Part[] => {
    const singles = traits.required.filter(({ length }) => length === 1).flat();
    const several = traits.required.filter(({ length }) => length > 1).map((names) => `in:${names.join(',')}`);
    const part = (kind: Part['kind'], name: string, values: readonly string[]): Part[] =>
      values.map((value) => ({ parameter: `${name}${suffix}`, value, suffix, kind }));
    return [
      ...part(
        'resource',
        'resources',
        [...resources].map(([name, amount]) => `${name}:${amount}`),
      ),
      ...part('trait', 'required', [...singles, ...traits.forbidden.map((name) => `!${name}`), ...several]),
      ...part('aggregate', 'member_of', [
        ...aggregates.required.map((uuids) => `in:${uuids.join(',')}`),
        ...(aggregates.forbidden.length > 0 ? [`!in:${aggregates.forbidden.join(',')}`] : []),
      ]),
      ...part('tree', 'in_tree', inTree ?? []),
    ];
  };
  const wide = (kind: Part['kind'], parameter: string, value: string): Part => ({
    parameter,
    value,
    kind,
    suffix: undefined,
  });
  const { required, forbidden } = request.rootTraits;
  return [
    ...request.groups.flatMap(ofGroup),
    ...[...required, ...forbidden.map((name) => `!${name}`)].map((name) => wide('root', 'root_required', name)),
    ...(request.isolate ? [wide('isolate', 'group_policy', 'isolate')] : []),
    ...request.sameSubtrees.map((suffixes) => wide('subtree', 'same_subtree', [...suffixes].join(','))),
  ];
}

/** The query of some conditions, as a client may write it: traits that stand beside each other in one parameter. */
export function queryOf(parts: readonly Part[]): string {
  const parameters: { name: string; value: string; kind: Part['kind'] }[] = [];
  for (const { parameter: name, value, kind } of parts) {
    const last = parameters.at(-1);
    const mayJoin = kind === 'resource' || kind === 'root' || (kind === 'trait' && !value.startsWith('in:'));
    if (mayJoin && last?.name === name && !last.value.startsWith('in:')) last.value += `,${value}`;
    else parameters.push({ name, value, kind });
  }
  if (!parameters.some(({ name }) => name === 'group_policy'))
    parameters.push({ name: 'group_policy', value: 'none', kind: 'isolate' });
  return parameters.map(({ name, value }) => `${name}=${value}`).join('&');
}

/** The request of some of the conditions, with what a request may not say without the others left out. */
export function requestOfParts(parts: readonly Part[]): CandidateRequest {
  const suffixes = [...new Set(parts.flatMap(({ suffix }) => suffix ?? []))];
  const valuesOf = (suffix: string, kind: Part['kind']) =>
    parts.filter((part) => part.suffix === suffix && part.kind === kind).map(({ value }) => value);
  const wide = (kind: Part['kind']) => parts.filter((part) => part.kind === kind).map(({ value }) => value);
  const listOf = (value: string): string[] => value.replace(/^!?(in:)?/, '').split(',');
  const split = (values: readonly string[]) => ({
    required: values.filter((value) => !value.startsWith('!')).map(listOf),
    forbidden: values.filter((value) => value.startsWith('!')).flatMap(listOf),
  });
  const oneOrNone = (values: readonly string[]) => (values.length === 0 ? undefined : values);
  const root = split(wide('root'));
  return {
    groups: suffixes.map((suffix) => ({
      suffix,
      resources: new Map(
        valuesOf(suffix, 'resource').map((value) => {
          const [name = '', amount] = value.split(':');
          return [name, Number(amount)];
        }),
      ),
      traits: split(valuesOf(suffix, 'trait')),
      aggregates: split(valuesOf(suffix, 'aggregate')),
      inTree: oneOrNone(valuesOf(suffix, 'tree')),
    })),
    limit: undefined,
    isolate: wide('isolate').length > 0,
    rootTraits: { required: root.required.flat(), forbidden: root.forbidden },
    sameSubtrees: wide('subtree')
      .map((value) => new Set(value.split(',').filter((suffix) => suffixes.includes(suffix))))
      .filter(({ size }) => size > 0),
    nested: true,
    ...anyTree,
  };
}
