import { parser } from '@prometheus-io/lezer-promql';
import type { Labels, Sample } from './series.ts';

/** Two scrapes of a service, and the time between them. A rate is what has grown from the first to the second. */
export type TwoScrapes = {
  readonly before: readonly Sample[];
  readonly now: readonly Sample[];
  readonly seconds: number;
};

type SyntaxNode = ReturnType<typeof parser.parse>['topNode'];
type Value = number | readonly Sample[];

/**
 * What an expression of PromQL selects: the part of the language that most alerts need. A range is the time between the two scrapes,
 * whatever its length.
 *
 * @throws Error for what it does not understand, such as `histogram_quantile`
 */
export function evaluate(expression: string, scrapes: TwoScrapes): readonly Sample[] {
  const text = (node: SyntaxNode): string => expression.slice(node.from, node.to);

  const valueIn = (node: SyntaxNode): Value => {
    const [first, ...others] = childrenOf(node);
    switch (node.name) {
      case 'PromQL':
      case 'ParenExpr':
      case 'FunctionCallBody':
        if (first === undefined || others.length > 0) throw notUnderstood(node);
        return valueIn(first);
      case 'NumberDurationLiteral':
        return Number(text(node));
      case 'VectorSelector':
        return scrapes.now.filter(matching(node));
      case 'FunctionCall':
        return increase(node);
      case 'AggregateExpr':
        return aggregate(node);
      case 'BinaryExpr':
        return combine(node);
      default:
        throw notUnderstood(node);
    }
  };

  const notUnderstood = (node: SyntaxNode): Error => new Error(`${node.name} in ${expression}: ${text(node)}`);
  const vectorOf = (node: SyntaxNode): readonly Sample[] => {
    const value = valueIn(node);
    if (typeof value === 'number') throw notUnderstood(node);
    return value;
  };

  const matching = (node: SyntaxNode): ((sample: Sample) => boolean) => {
    const [name, matchers] = childrenOf(node);
    if (name === undefined) throw notUnderstood(node);
    const conditions = (matchers === undefined ? [] : childrenOf(matchers)).map((matcher) => {
      const [label, operator, quoted] = childrenOf(matcher).map(text);
      const wanted: string = JSON.parse(quoted ?? '');
      const isPattern = operator?.endsWith('~');
      const fits = isPattern
        ? (value: string) => new RegExp(`^(?:${wanted})$`).test(value)
        : (value: string) => value === wanted;
      return ({ labels }: Sample) => fits(labels[label ?? ''] ?? '') !== (operator?.startsWith('!') ?? false);
    });
    return (sample) => sample.labels.__name__ === text(name) && conditions.every((holds) => holds(sample));
  };

  const increase = (node: SyntaxNode): readonly Sample[] => {
    const [name, body] = childrenOf(node);
    const selector = body?.getChild('MatrixSelector')?.getChild('VectorSelector');
    const divisor = { increase: 1, rate: scrapes.seconds }[name === undefined ? '' : text(name)];
    if (!selector || divisor === undefined) throw notUnderstood(node);
    const former = new Map(
      scrapes.before.filter(matching(selector)).map(({ labels, value }) => [keyOf(labels), value]),
    );
    return scrapes.now.filter(matching(selector)).flatMap(({ labels, value }) => {
      const from = former.get(keyOf(labels));
      return from === undefined ? [] : [{ labels: withoutName(labels), value: (value - from) / divisor }];
    });
  };

  const aggregate = (node: SyntaxNode): readonly Sample[] => {
    const [operator, modifier, body] = childrenOf(node);
    const join = { sum: (a: number, b: number) => a + b, max: (a: number, b: number) => Math.max(a, b) }[
      operator === undefined ? '' : text(operator)
    ];
    if (join === undefined || modifier?.getChild('By') == null || body === undefined) throw notUnderstood(node);
    const by = labelsIn(modifier);
    const groups = Map.groupBy(vectorOf(body), ({ labels }) => keyOf(only(labels, by)));
    return [...groups.values()].map((group) => ({
      labels: only(group[0]?.labels ?? {}, by),
      value: group.map(({ value }) => value).reduce(join),
    }));
  };
  const labelsIn = (node: SyntaxNode): readonly string[] =>
    (node.getChild('GroupingLabels')?.getChildren('LabelName') ?? []).map(text);

  const combine = (node: SyntaxNode): readonly Sample[] => {
    const parts = childrenOf(node);
    const [left, operatorNode] = parts;
    const right = parts.at(-1);
    const modifier = node.getChild('MatchingModifierClause');
    if (left === undefined || operatorNode === undefined || right === undefined) throw notUnderstood(node);
    const operator = text(operatorNode);
    const on = modifier === null ? undefined : labelsIn(modifier);
    const match = ({ labels }: Sample): string => keyOf(on === undefined ? withoutName(labels) : only(labels, on));
    const lefts = vectorOf(left);
    if (operator === 'and' || operator === 'or') {
      const rights = vectorOf(right);
      const [leftKeys, rightKeys] = [new Set(lefts.map(match)), new Set(rights.map(match))];
      return operator === 'and'
        ? lefts.filter((sample) => rightKeys.has(match(sample)))
        : [...lefts, ...rights.filter((sample) => !leftKeys.has(match(sample)))];
    }
    const value = valueIn(right);
    const other = typeof value === 'number' ? undefined : new Map(value.map((sample) => [match(sample), sample.value]));
    return lefts.flatMap((sample) => {
      const by = typeof value === 'number' ? value : other?.get(match(sample));
      if (by === undefined) return [];
      const compare = comparisons[operator];
      if (compare !== undefined) return compare(sample.value, by) ? [sample] : [];
      const calculate = calculations[operator];
      if (calculate === undefined) throw notUnderstood(node);
      return [{ labels: withoutName(sample.labels), value: calculate(sample.value, by) }];
    });
  };

  const value = valueIn(parser.parse(expression).topNode);
  if (typeof value === 'number') throw new Error(`${expression} is a number.`);
  return value;
}

const comparisons: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '>': (a, b) => a > b,
  '>=': (a, b) => a >= b,
  '<': (a, b) => a < b,
  '<=': (a, b) => a <= b,
};

const calculations: Readonly<Record<string, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};

function childrenOf(node: SyntaxNode): readonly SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child);
  return children;
}

const keyOf = (labels: Labels): string =>
  JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)));
const only = (labels: Labels, names: readonly string[]): Labels =>
  Object.fromEntries(Object.entries(labels).filter(([name]) => names.includes(name)));
const withoutName = ({ __name__, ...labels }: Labels): Labels => labels;
