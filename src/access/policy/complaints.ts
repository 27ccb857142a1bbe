import { nearName } from '../../text/near_name.ts';
import { referredRules } from './check.ts';
import { namesInCircles } from './circles.ts';
import { firstOf } from './first_of.ts';
import { allDefaults, type Rules } from './rules.ts';

const defaultNames: readonly string[] = allDefaults.map(({ name }) => name);

/** How many of the rules that a rule refers to and that do not exist are named. */
const shownNames = 10;

/**
 * Problems of rules that refer to others, and rules without effect, one sentence for each. If there are very many of a
 * kind, the first ones, and a sentence for the others.
 */
export function ruleComplaints(rules: Rules): readonly string[] {
  const references = new Map([...rules.byName.values()].map(({ name, check }) => [name, referredRules(check)]));
  return [
    ...unusedRules(rules, references),
    ...undefinedRules(references),
    ...firstOf(
      [...namesInCircles(references)],
      (name) => `The policy rule ${name} refers to itself, directly or through other rules, so it denies.`,
      (others) => `${others} more policy rules refer to themselves, so they deny.`,
    ),
  ];
}

type References = ReadonlyMap<string, readonly string[]>;

/**
 * Rules of files that no request and no other rule uses: their names are of older releases or misspelled, so that the
 * default holds instead.
 */
function unusedRules({ byName, settings }: Rules, references: References): readonly string[] {
  const used = new Set([
    settings.policyDefaultRule,
    ...allDefaults.flatMap(({ deprecated }) => deprecated?.name ?? []),
  ]);
  for (const referred of references.values()) for (const name of referred) used.add(name);
  return firstOf(
    [...byName.values()].filter((rule) => rule.default === undefined && !used.has(rule.name)),
    ({ name, file }) => {
      const meant = nearName(name, defaultNames);
      const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
      return `The policy rule ${name} of ${file} has no effect: no request and no other rule asks for it.${question}`;
    },
    (others) => `${others} more policy rules have no effect: no request and no other rule asks for them.`,
  );
}

function undefinedRules(references: References): readonly string[] {
  const referring = [...references].flatMap(([name, referred]) => {
    const missing = referred.filter((other) => !references.has(other));
    return missing.length === 0 ? [] : [{ name, missing }];
  });
  return firstOf(
    referring,
    ({ name, missing }) => {
      const others = missing.length > shownNames ? ` and ${missing.length - shownNames} more` : '';
      return `The policy rule ${name} refers to rules that do not exist: ${missing.slice(0, shownNames).join(', ')}${others}.`;
    },
    (others) => `${others} more policy rules refer to rules that do not exist.`,
  );
}
