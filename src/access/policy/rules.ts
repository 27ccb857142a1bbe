import type { Identity } from '../../rest/identity.ts';
import { computeRuleDefaults, metricsRule, type RuleDefault, ruleDefaults } from './defaults.ts';
import {
  type Check,
  CircularRules,
  type Circumstances,
  credentialsOf,
  evaluate,
  printCheck,
  type Scope,
  scopeOf,
  type Values,
} from './evaluate.ts';
import { type FileRule, parseRule } from './parse.ts';

/** The options of `[oslo_policy]` that decide how rules are evaluated. */
export type RuleSettings = {
  readonly enforceScope: boolean;
  readonly enforceNewDefaults: boolean;
  /** The rule that decides where there is no rule of a name. */
  readonly policyDefaultRule: string;
};

/** A rule that holds. */
export type Rule = {
  readonly name: string;
  readonly check: Check;
  /** The file of the rule; undefined for a default. */
  readonly file: string | undefined;
  /** undefined for rules that only files have. */
  readonly default: RuleDefault | undefined;
};

/** The rules in force; rules with defaults come first. */
export type Rules = { readonly byName: ReadonlyMap<string, Rule>; readonly settings: RuleSettings };

/** What a rule decides about a request; and, where its check does not decide, what does. */
type Decision = { readonly allowed: boolean; readonly because: 'check' | 'scope' | 'unknown rule' | 'circle' };

/** Placement's rules, and then the rules of the compute services. */
export const allDefaults: readonly RuleDefault[] = [...ruleDefaults, metricsRule, ...computeRuleDefaults];

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
  const { result, because } = judgeRule(rules, name, identity, target);
  return { allowed: result === true, because };
}

/** What rules have decided for an identity whatever the target is, by their names. Neither rules nor identities change. */
const decidedForAny = new WeakMap<
  Identity,
  { readonly by: Rules; readonly results: Map<string, boolean | undefined> }
>();

/** Whether a rule allows this identity to do something, whatever the target is; undefined where it depends on the target. */
export function decideForAny(rules: Rules, name: string, identity: Identity): boolean | undefined {
  let decided = decidedForAny.get(identity);
  if (decided?.by !== rules) {
    decided = { by: rules, results: new Map() };
    decidedForAny.set(identity, decided);
  }
  const { results } = decided;
  if (!results.has(name)) results.set(name, judgeRule(rules, name, identity, {}).result);
  return results.get(name);
}

/** The result of a rule; undefined if it is unknown, for example because the target lacks a value that the rule compares. */
function judgeRule(
  rules: Rules,
  name: string,
  identity: Identity,
  target: Values,
): { readonly result: boolean | undefined; readonly because: Decision['because'] } {
  const rule = findRule(rules, name);
  if (rule === undefined) return { result: false, because: 'unknown rule' };
  if (rules.settings.enforceScope && !isInScope(rules, name, scopeOf(identity))) {
    return { result: false, because: 'scope' };
  }
  try {
    return { result: evaluate(rule.check, circumstancesOf(rules, identity, target), [name]), because: 'check' };
  } catch (error) {
    if (error instanceof CircularRules) return { result: false, because: 'circle' };
    throw error;
  }
}

/** What the checks of a request read: which user sends it, what it is about, and the rules that checks refer to. */
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
  const name = settings.policyDefaultRule;
  if (!byName.has(name)) return undefined;
  // Referred to by its name, it is evaluated once for all rules that do not exist.
  return {
    type: 'or',
    checks: [
      { type: 'match', kind: 'rule', match: name },
      { type: 'broken', text: 'unknown' },
    ],
  };
}

/** Whether the rule of this name allows tokens of the scope. The scopes of rules that it refers to do not matter. */
function isInScope(rules: Rules, name: string, scope: Scope): boolean {
  return rules.byName.get(name)?.default?.scopeTypes?.includes(scope) ?? true;
}
