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
