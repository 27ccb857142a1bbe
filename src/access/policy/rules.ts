import type { Identity } from '../../rest/identity.ts';
import { nearName } from '../../text/near_name.ts';
import { type Check, printCheck, referredRules } from './check.ts';
import { computeRuleDefaults } from './compute_defaults.ts';
import { credentialsOf, type Scope, scopeOf } from './credentials.ts';
import { metricsRule, type RuleDefault, ruleDefaults } from './defaults.ts';
import { CircularRules, type Circumstances, evaluate } from './evaluate.ts';
import { parseRule } from './parse.ts';
import type { Values } from './template.ts';

/** The options of `[oslo_policy]` that decide how rules are evaluated. */
export type RuleSettings = {
  readonly enforceScope: boolean;
  readonly enforceNewDefaults: boolean;
  /** The rule that decides where there is no rule of a name. */
  readonly policyDefaultRule: string;
};

/** A rule of a policy file. */
export type FileRule = { readonly name: string; readonly check: Check; readonly file: string };

/** A rule that holds. */
export type Rule = {
  readonly name: string;
  readonly check: Check;
  /** The file that it comes from; undefined for a default. */
  readonly file: string | undefined;
  /** undefined for rules that only files have. */
  readonly default: RuleDefault | undefined;
};

/** The rules that hold, those with defaults first. */
export type Rules = { readonly byName: ReadonlyMap<string, Rule>; readonly settings: RuleSettings };

/** What a rule decides about a request; and, where its check does not decide, what does. */
export type Decision = { readonly allowed: boolean; readonly because: 'check' | 'scope' | 'unknown rule' | 'circle' };

/** Placement's rules, and then those of the services beside it. */
const allDefaults: readonly RuleDefault[] = [...ruleDefaults, metricsRule, ...computeRuleDefaults];

/** The defaults and the rules of the files. A later rule replaces an earlier one of the same name. */
export function assembleRules(fileRules: readonly FileRule[], settings: RuleSettings): Rules {
  const written = new Map(fileRules.map((rule) => [rule.name, rule]));
  const rules = allDefaults.map((ruleDefault): Rule => {
    const { name } = ruleDefault;
    const own = written.get(name);
    if (own !== undefined) return { ...own, default: ruleDefault };
    return { name, default: ruleDefault, ...defaultCheck(ruleDefault, written, settings) };
  });
  const known = new Set(allDefaults.map(({ name }) => name));
  const others = [...written.values()].filter(({ name }) => !known.has(name));
  const all = [...rules, ...others.map((rule): Rule => ({ ...rule, default: undefined }))];
  return { byName: new Map(all.map((rule) => [rule.name, rule])), settings };
}

function defaultCheck(
  { name, check, deprecated }: RuleDefault,
  written: ReadonlyMap<string, FileRule>,
  { enforceNewDefaults }: RuleSettings,
): Pick<Rule, 'check' | 'file'> {
  const own = parseRule(check).check;
  if (deprecated === undefined) return { check: own, file: undefined };
  const former = parseRule(deprecated.check).check;
  // A file may still change the rule under its former name.
  const override = written.get(deprecated.name);
  const text = override === undefined ? undefined : printCheck(override.check);
  if (override !== undefined && text !== printCheck(former) && text !== `rule:${name}`) {
    return { check: override.check, file: override.file };
  }
  return { check: enforceNewDefaults ? own : { type: 'or', checks: [own, former] }, file: undefined };
}

/** The rule of this name; where there is none, the one that `policy_default_rule` names. */
export const findRule = ({ byName, settings }: Rules, name: string): Rule | undefined =>
  byName.get(name) ?? byName.get(settings.policyDefaultRule);

/** Whether a rule allows this identity to do something to the target. */
export function decide(rules: Rules, name: string, identity: Identity, target: Values): Decision {
  const rule = findRule(rules, name);
  if (rule === undefined) return { allowed: false, because: 'unknown rule' };
  if (rules.settings.enforceScope && !isInScope(rules, name, scopeOf(identity))) {
    return { allowed: false, because: 'scope' };
  }
  try {
    const allowed = evaluate(rule.check, circumstancesOf(rules, identity, target), [name]) === true;
    return { allowed, because: 'check' };
  } catch (error) {
    if (error instanceof CircularRules) return { allowed: false, because: 'circle' };
    throw error;
  }
}

/** What the checks of a request look at: who sends it, what it is about, and the rules that checks refer to. */
export const circumstancesOf = (rules: Rules, identity: Identity, target: Values): Circumstances => ({
  credentials: credentialsOf(identity),
  target,
  rule: (name) => rules.byName.get(name)?.check ?? standIn(rules),
});

/**
 * The check for a rule that does not exist: what `policy_default_rule` allows. What that denies stays unknown, since
 * otherwise `not rule:unknown` would be allowed.
 */
function standIn({ byName, settings }: Rules): Check | undefined {
  const fallback = byName.get(settings.policyDefaultRule);
  return fallback && { type: 'or', checks: [fallback.check, { type: 'broken', text: 'unknown' }] };
}

/** Whether the rule of this name allows tokens of the scope. The scopes of rules that it refers to do not matter. */
function isInScope(rules: Rules, name: string, scope: Scope): boolean {
  return rules.byName.get(name)?.default?.scopeTypes?.includes(scope) ?? true;
}

/** Problems of rules that refer to others, and rules without effect, one sentence for each. */
export function ruleComplaints(rules: Rules): readonly string[] {
  const { byName } = rules;
  const complaints = [...unusedRules(rules)];
  for (const { name, check } of byName.values()) {
    const undefinedOnes = referredRules(check).filter((referred) => !byName.has(referred));
    if (undefinedOnes.length > 0) {
      complaints.push(`The policy rule ${name} refers to rules that do not exist: ${undefinedOnes.join(', ')}.`);
    }
    if (isInCircle(name, byName)) {
      complaints.push(`The policy rule ${name} refers to itself, directly or through other rules, so it denies.`);
    }
  }
  return complaints;
}

/**
 * Rules of files that no request and no other rule uses: their names are of older releases or misspelled, so that the
 * default holds instead.
 */
function unusedRules({ byName, settings }: Rules): readonly string[] {
  const used = new Set([
    settings.policyDefaultRule,
    ...allDefaults.flatMap(({ deprecated }) => deprecated?.name ?? []),
    ...[...byName.values()].flatMap(({ check }) => referredRules(check)),
  ]);
  const unused = [...byName.values()].filter((rule) => rule.default === undefined && !used.has(rule.name));
  return unused.map(({ name, file }) => {
    const meant = nearName(
      name,
      allDefaults.map((rule) => rule.name),
    );
    const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
    return `The policy rule ${name} of ${file} has no effect: no request and no other rule asks for it.${question}`;
  });
}

function isInCircle(name: string, byName: ReadonlyMap<string, Rule>): boolean {
  const seen = new Set<string>();
  const queue = [name];
  for (let next = queue.pop(); next !== undefined; next = queue.pop()) {
    const rule = byName.get(next);
    for (const referred of rule === undefined ? [] : referredRules(rule.check)) {
      if (referred === name) return true;
      if (!seen.has(referred)) queue.push(referred);
      seen.add(referred);
    }
  }
  return false;
}
