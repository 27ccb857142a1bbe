import assert from 'node:assert/strict';
import { parser } from '@prometheus-io/lezer-promql';

type Selector = { readonly metric: string; readonly labels: readonly string[]; readonly isRate: boolean };
type Query = { readonly selectors: readonly Selector[]; readonly grouped: readonly string[] };

/**
 * The metrics that an expression selects, and the labels by which it groups. @throws AssertionError if it is not PromQL
 */
export function readQuery(expression: string): Query {
  const text = expression.replaceAll('$__rate_interval', '5m');
  const selectors: { metric: string; labels: string[]; isRate: boolean }[] = [];
  const grouped: string[] = [];
  const within: string[] = [];
  parser.parse(text).iterate({
    enter: ({ type, name, from, to }) => {
      assert.ok(!type.isError, `${expression} is PromQL up to ${from}`);
      if (name === 'VectorSelector')
        selectors.push({ metric: '', labels: [], isRate: within.includes('MatrixSelector') });
      const selector = selectors.at(-1);
      if (name === 'Identifier' && selector !== undefined) selector.metric = text.slice(from, to);
      if (name === 'LabelName')
        (within.includes('GroupingLabels') ? grouped : selector?.labels)?.push(text.slice(from, to));
      within.push(name);
    },
    leave: () => void within.pop(),
  });
  assert.ok(selectors.length > 0, expression);
  return { selectors, grouped };
}
