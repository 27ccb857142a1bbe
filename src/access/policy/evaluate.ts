import type { Identity } from '../../rest/identity.ts';

/** A policy rule as a tree, as the rule language (`./parse.ts`) describes it. */
export type Check =
  /** `@` */
  | { readonly type: 'allow' }
  /** `!` */
  | { readonly type: 'deny' }
  /** What cannot be evaluated, as it was written: a malformed check, or a rule that cannot be parsed. */
  | { readonly type: 'broken'; readonly text: string }
  /** `kind:match`, such as `role:admin`, `rule:admin_api`, `project_id:%(project_id)s`. */
  | { readonly type: 'match'; readonly kind: string; readonly match: string }
  | { readonly type: 'not'; readonly check: Check }
  /** At least two checks. */
  | { readonly type: 'and' | 'or'; readonly checks: readonly Check[] };

/** The check that always allows. */
export const allow: Check = { type: 'allow' };
/** The check that never allows. */
export const deny: Check = { type: 'deny' };

/**
 * The text of a check in the rule language; groups are always in parentheses, so that readers need not know the
 * precedence.
 */
export function printCheck(check: Check): string {
  switch (check.type) {
    case 'allow':
      return '@';
    case 'deny':
      return '!';
    case 'match':
      return `${check.kind}:${check.match}`;
    case 'broken':
      return check.text;
    case 'not':
      return `not ${printCheck(check.check)}`;
    default:
      return `(${check.checks.map(printCheck).join(` ${check.type} `)})`;
  }
}

/** The names that a check refers to by `rule:name`. */
export const referredRules = (check: Check): readonly string[] => matched(check, 'rule');

/** The roles that a check names by `role:name`. */
export const namedRoles = (check: Check): readonly string[] => matched(check, 'role');

function matched(check: Check, kind: string): readonly string[] {
  switch (check.type) {
    case 'match':
      return check.kind === kind ? [check.match] : [];
    case 'not':
      return matched(check.check, kind);
    case 'and':
    case 'or':
      return check.checks.flatMap((each) => matched(each, kind));
    default:
      return [];
  }
}

/** The kinds of tokens that rules may be for. */
export type Scope = 'project' | 'domain' | 'system';

/**
 * The values of an identity that rules may use: oslo.context's policy values. Each name is always there: a check that
 * needs another one cannot be evaluated.
 */
export function credentialsOf(identity: Identity): Values {
  const { service } = identity;
  return {
    user_id: identity.userId,
    user_domain_id: identity.userDomainId ?? null,
    system_scope: identity.systemScope ?? null,
    // Without a scope for the system it equals nothing, not even None.
    system: identity.systemScope ? identity.systemScope : [],
    domain_id: identity.domainId ?? null,
    project_id: identity.projectId ?? null,
    project_domain_id: identity.projectDomainId ?? null,
    roles: identity.roles,
    is_admin_project: identity.isAdminProject,
    service_user_id: service?.userId ?? null,
    service_user_domain_id: service?.userDomainId ?? null,
    service_project_id: service?.projectId ?? null,
    service_project_domain_id: service?.projectDomainId ?? null,
    service_roles: service?.roles ?? [],
  };
}

/** A token without any scope counts as one for a project, as in oslo.policy. */
export function scopeOf({ systemScope, domainId }: Identity): Scope {
  if (systemScope) return 'system';
  return domainId ? 'domain' : 'project';
}

/** The values of credentials and targets: JSON. */
type Value = string | number | boolean | null | readonly Value[] | { readonly [key: string]: Value };
/** The values by name. */
export type Values = { readonly [key: string]: Value };

/** Python's `%` formatting by names, as far as rules use it. */
const reference = /%(?:(%)|\(([^()]*)\)s)/g;

/** Whether every percent sign belongs to a `%(name)s` or `%%`. */
export const isTemplate = (text: string): boolean => !text.replaceAll(reference, '').includes('%');

/**
 * Fills in a template such as `%(project_id)s`; undefined where the values lack a name of the template.
 *
 * @param nullIsMissing whether null is no value; else it is `None`.
 */
export function fillTemplate(template: string, values: Values, nullIsMissing: boolean): string | undefined {
  if (!template.includes('%')) return template;
  let complete = true;
  const filled = template.replaceAll(reference, (_match, percent: string | undefined, name: string) => {
    if (percent !== undefined) return '%';
    const value = Object.hasOwn(values, name) ? (values[name] ?? null) : undefined;
    if (value !== undefined && !(nullIsMissing && value === null)) return pythonText(value);
    complete = false;
    return '';
  });
  return complete ? filled : undefined;
}

/** A value as Python's `str` writes it: rules compare texts, `is_admin_project:True` for example. */
export function pythonText(value: Value): string {
  if (value === null) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/**
 * The text of a Python literal: `True`, `None`, `'Member'`, `-1`; undefined where it is no literal. The kind of a check
 * may be a literal: `'Member':%(role)s`.
 */
export function literalText(text: string): string | undefined {
  if (text === 'True' || text === 'False' || text === 'None') return text;
  const quoted = /^(?:'([^'\\]*)'|"([^"\\]*)")$/.exec(text);
  if (quoted !== null) return quoted[1] ?? quoted[2];
  if (/^[-+]?(?:0|[1-9]\d{0,14})$/.test(text)) return String(Number(text) + 0);
  const decimal = /^[-+]?\d{1,8}\.\d{1,6}$/.test(text) ? Number(text) : undefined;
  if (decimal === undefined) return undefined;
  return Number.isInteger(decimal) ? decimal.toFixed(1) : String(decimal);
}

/** The values that a check is evaluated with. */
export type Circumstances = {
  /** Of the request's identity: `user_id`, `project_id`, `roles` and so on (`credentialsOf`). */
  readonly credentials: Values;
  /** Of what the request is about: `project_id`, `user_id`. */
  readonly target: Values;
  /** The check of another rule, for `rule:name`; undefined where there is none. */
  readonly rule: (name: string) => Check | undefined;
};

/** Rules that refer to each other in a circle. They cannot be evaluated, so they deny. */
export class CircularRules extends Error {}

/** The results of rules that were evaluated before under the same circumstances, by name. */
export type RuleResults = Map<string, boolean | undefined>;

/** A check that is being evaluated. */
type Evaluation = {
  readonly check: Check;
  /** The operands of `and`, `or` and `not`, or the check of the rule that this check refers to. */
  readonly parts: readonly Check[];
  /** How many of the parts need no further evaluation. */
  done: number;
  /** The result of the parts that were evaluated so far. */
  result: boolean | undefined;
};

/**
 * Whether a check holds; undefined if that is unknown, since a check is malformed, or refers to a rule or a value
 * that does not exist. Only true allows a request. So an unknown result allows nothing behind a `not` either, and
 * has no effect where the other checks decide: `role:admin or rule:unknown` allows administrators.
 *
 * Each rule is evaluated once. A rule with a result refers to no rule that is still being evaluated, so its result holds for
 * every caller. This is a loop and not a recursion, because a chain of rules may be long.
 *
 * @param within the names of the rules that are being evaluated already.
 * @param results is completed.
 * @throws CircularRules where a rule refers to itself, directly or through other rules.
 */
export function evaluate(
  check: Check,
  circumstances: Circumstances,
  within: readonly string[] = [],
  results: RuleResults = new Map(),
): boolean | undefined {
  const inside = new Set(within);
  const path: Evaluation[] = [];
  let last = begin(check, circumstances, inside, results);
  for (;;) {
    const part = last.parts[last.done];
    if (part !== undefined) {
      path.push(last);
      last = begin(part, circumstances, inside, results);
      continue;
    }
    if (last.check.type === 'match' && last.check.kind === 'rule') {
      inside.delete(last.check.match);
      results.set(last.check.match, last.result);
    }
    const around = path.pop();
    if (around === undefined) return last.result;
    addResult(around, last.result);
    last = around;
  }
}

function begin(check: Check, circumstances: Circumstances, inside: Set<string>, results: RuleResults): Evaluation {
  switch (check.type) {
    case 'not':
      return { check, parts: [check.check], done: 0, result: undefined };
    case 'and':
    case 'or':
      return { check, parts: check.checks, done: 0, result: check.type === 'and' };
    case 'match':
      return check.kind === 'rule'
        ? beginRule(check, circumstances, inside, results)
        : { check, parts: [], done: 0, result: evaluateMatch(check, circumstances) };
    default:
      return { check, parts: [], done: 0, result: check.type === 'broken' ? undefined : check.type === 'allow' };
  }
}

function beginRule(
  check: Extract<Check, { type: 'match' }>,
  circumstances: Circumstances,
  inside: Set<string>,
  results: RuleResults,
): Evaluation {
  const name = check.match;
  if (results.has(name)) return { check, parts: [], done: 0, result: results.get(name) };
  if (inside.has(name)) throw new CircularRules([...inside, name].join(' -> '));
  inside.add(name);
  const own = circumstances.rule(name);
  return { check, parts: own === undefined ? [] : [own], done: 0, result: undefined };
}

/** A false check decides an `and`, and a true check an `or`, also if other checks are unknown. */
function addResult(around: Evaluation, result: boolean | undefined): void {
  const { type } = around.check;
  around.done += 1;
  if (type === 'not') around.result = result === undefined ? undefined : !result;
  else if (type === 'match') around.result = result;
  else if (result === (type === 'or')) {
    around.result = result;
    around.done = around.parts.length;
  } else if (result === undefined) around.result = undefined;
}

function evaluateMatch(
  { kind, match }: Extract<Check, { type: 'match' }>,
  { credentials, target }: Circumstances,
): boolean | undefined {
  const literal = literalText(kind);
  // If the target has no project, it does not match a token without a project: null is no value.
  const wanted = fillTemplate(match, target, literal === undefined);
  if (wanted === undefined) return undefined;
  if (kind === 'role') {
    const { roles } = credentials;
    return Array.isArray(roles) && roles.some((role) => String(role).toLowerCase() === wanted.toLowerCase());
  }
  if (literal !== undefined) return literal === wanted;
  const [name = '', ...rest] = kind.split('.');
  if (!Object.hasOwn(credentials, name)) return undefined;
  return isFound(credentials, [name, ...rest], (found) => {
    // Nor does a token without a project belong to a project whose id is the text None.
    return (found !== null || match === wanted) && pythonText(found) === wanted;
  });
}

/** Follows a path into the credentials. Where there is a list on the way, any of its elements may match. */
function isFound(value: Value, [key, ...rest]: readonly string[], matches: (found: Value) => boolean): boolean {
  if (key === undefined) return matches(value);
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return false;
  const found = (value as Values)[key] ?? null; // neither null nor a list, so an object
  return Array.isArray(found) ? found.some((each) => isFound(each, rest, matches)) : isFound(found, rest, matches);
}
