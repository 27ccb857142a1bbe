import type { Check } from '../../src/access/policy/evaluate.ts';

/**
 * Evaluates a rule on its text, without a tree. Words become true or false. Then each innermost pair of parentheses is
 * replaced by its result until none is left.
 *
 * @param truths the results of the single checks
 */
export function naiveEvaluation(rule: string, truths: Readonly<Record<string, boolean>>): boolean {
  const atoms = Object.keys(truths).toSorted((a, b) => b.length - a.length);
  let text = ` ${rule.replaceAll(/\b(?:and|or|not)\b/gi, (word) => word.toLowerCase())} `;
  for (const atom of atoms) text = text.replaceAll(atom, truths[atom] ? ' T ' : ' F ');
  for (let before = ''; before !== text; ) {
    before = text;
    text = text.replaceAll(/\(([^()]*)\)/g, (_match, inner: string) => (flat(inner) ? ' T ' : ' F '));
  }
  return flat(text);
}

/** A text without parentheses: alternatives of conjunctions of words, each with any number of `not` before it. */
const flat = (text: string): boolean =>
  text.split(/\bor\b/).some((alternative) =>
    alternative.split(/\band\b/).every((part) => {
      const words = part.split(/\s+/).filter((word) => word !== '');
      return (words.at(-1) === 'T') === (words.length % 2 === 1);
    }),
  );

/**
 * Evaluates a check and the rules that it refers to, each as often as it is referred to. `circle` where the way leads
 * into a rule that it is in.
 *
 * @param leaf the result of a check that is neither joined nor a reference
 */
export function naiveRuleEvaluation(
  check: Check,
  rule: (name: string) => Check | undefined,
  leaf: (check: Check) => boolean | undefined,
  within: readonly string[],
): boolean | undefined | 'circle' {
  const evaluate = (each: Check, inside = within) => naiveRuleEvaluation(each, rule, leaf, inside);
  if (check.type === 'not') {
    const result = evaluate(check.check);
    return typeof result === 'boolean' ? !result : result;
  }
  if (check.type === 'and' || check.type === 'or') {
    let isUnknown = false;
    for (const each of check.checks) {
      const result = evaluate(each);
      if (result === 'circle' || result === (check.type === 'or')) return result;
      isUnknown ||= result === undefined;
    }
    return isUnknown ? undefined : check.type === 'and';
  }
  if (check.type !== 'match' || check.kind !== 'rule') return leaf(check);
  if (within.includes(check.match)) return 'circle';
  const referred = rule(check.match);
  return referred && evaluate(referred, [...within, check.match]);
}
