import type { Identity } from '../../rest/identity.ts';
import {
  type Check,
  CircularRules,
  type Circumstances,
  evaluate,
  fillTemplate,
  literalText,
  printCheck,
  pythonText,
  type RuleResults,
  scopeOf,
  type Values,
} from './evaluate.ts';
import { circumstancesOf, decide, findRule, type Rule, type Rules } from './rules.ts';

/** The decision of a rule, and lines of text with the reasons. */
export type RuleExplanation = { readonly allowed: boolean; readonly lines: readonly string[] };

/** The explanation in progress, and the explained rules. */
type Explained = {
  readonly rules: Rules;
  readonly circumstances: Circumstances;
  readonly results: RuleResults;
  /** The names of the rules that have their lines. */
  readonly names: Set<string>;
};

/** How many levels of rules an explanation shows: with more it would be too long to read. */
const maxRulesDeep = 100;

/**
 * The decision of a rule, and why: one line for each check, which says whether it holds, and if not, which value is
 * missing or different. A rule that is referred to several times is explained where it is first.
 */
export function explainDecision(rules: Rules, name: string, identity: Identity, target: Values): RuleExplanation {
  const { allowed, because } = decide(rules, name, identity, target);
  const lines = [`${name}: ${allowed ? 'allowed' : 'denied'}`];
  const rule = findRule(rules, name);
  if (rule === undefined || because === 'unknown rule') {
    return {
      allowed,
      lines: [...lines, `  There is no rule ${name}, and none named ${rules.settings.policyDefaultRule}.`],
    };
  }
  if (because === 'circle')
    return { allowed, lines: [...lines, '  The rule refers to itself, directly or through other rules.'] };
  const scope = scopeOf(identity);
  const scopes = rules.byName.get(name)?.default?.scopeTypes ?? [];
  const inScope = scopes.length === 0 || scopes.includes(scope);
  if (!inScope) {
    const effect = rules.settings.enforceScope ? '' : ', which [oslo_policy] enforce_scope = false lets pass';
    lines.push(
      mark(because !== 'scope', 1, `the rule is for scope ${scopes.join(', ')}, the token for ${scope}${effect}`),
    );
  }
  const circumstances = circumstancesOf(rules, identity, target);
  const explained: Explained = { rules, circumstances, results: new Map(), names: new Set() };
  return { allowed, lines: [...lines, ...explainRule(rule, explained, 1, [rule.name])] };
}

/** Where a rule comes from, for people. */
export const originOf = ({ file }: Rule): string => file ?? 'default';

const mark = (met: boolean, depth: number, text: string): string =>
  `${met ? 'yes' : 'no '} ${'  '.repeat(depth - 1)}${text}`;

function explainRule(rule: Rule, explained: Explained, depth: number, within: readonly string[]): readonly string[] {
  const met = isMet(rule.check, explained, within);
  if (explained.names.has(rule.name)) return [mark(met, depth, `${rule.name} (see above)`)];
  if (within.length > maxRulesDeep) return [mark(met, depth, `${rule.name} (rules in it are left out)`)];
  explained.names.add(rule.name);
  return [
    mark(met, depth, `${rule.name} = ${printCheck(rule.check)} (${originOf(rule)})`),
    ...explainCheck(rule.check, explained, depth + 1, within),
  ];
}

function explainCheck(check: Check, explained: Explained, depth: number, within: readonly string[]): readonly string[] {
  const met = isMet(check, explained, within);
  if (check.type === 'and' || check.type === 'or') {
    return [
      mark(met, depth, check.type === 'and' ? 'all of' : 'any of'),
      ...check.checks.flatMap((each) => explainCheck(each, explained, depth + 1, within)),
    ];
  }
  if (check.type === 'not') {
    return [mark(met, depth, 'not'), ...explainCheck(check.check, explained, depth + 1, within)];
  }
  if (check.type === 'broken')
    return [mark(met, depth, `${check.text} (malformed: it allows nothing, also behind not)`)];
  if (check.type !== 'match') return [mark(met, depth, printCheck(check))];
  if (check.kind !== 'rule') {
    return [mark(met, depth, `${printCheck(check)} ${explainMatch(check, explained.circumstances)}`)];
  }
  const referred = findRule(explained.rules, check.match);
  if (referred === undefined) return [mark(met, depth, `${printCheck(check)} (there is no such rule)`)];
  if (within.includes(check.match)) return [mark(met, depth, `${printCheck(check)} (the rule refers to itself)`)];
  return explainRule(referred, explained, depth, [...within, check.match]);
}

function isMet(check: Check, { circumstances, results }: Explained, within: readonly string[]): boolean {
  try {
    return evaluate(check, circumstances, within, results) === true;
  } catch (error) {
    if (error instanceof CircularRules) return false;
    throw error;
  }
}

/** The two values that a check compares. */
function explainMatch({ kind, match }: { readonly kind: string; readonly match: string }, of: Circumstances): string {
  const wanted = fillTemplate(match, of.target, literalText(kind) === undefined);
  if (wanted === undefined) return '(the request is about nothing of that name)';
  const own = of.credentials[kind === 'role' ? 'roles' : kind];
  const shown = Array.isArray(own)
    ? own.map(pythonText).join(', ') || 'none'
    : own === undefined
      ? 'unknown'
      : pythonText(own);
  const what = kind === 'role' ? 'roles' : kind;
  return match === wanted ? `(${what}: ${shown})` : `(${what}: ${shown}; asked for: ${wanted})`;
}
