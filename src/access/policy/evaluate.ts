import type { Check } from './check.ts';
import { fillTemplate, literalText, pythonText, type Value, type Values } from './template.ts';

/** The values that a check is evaluated with. */
export type Circumstances = {
  /** Of the request's identity: `user_id`, `project_id`, `roles` and so on (`./credentials.ts`). */
  readonly credentials: Values;
  /** Of what the request is about: `project_id`, `user_id`. */
  readonly target: Values;
  /** The check of another rule, for `rule:name`; undefined where there is none, which denies. */
  readonly rule: (name: string) => Check | undefined;
};

/** Rules that refer to each other in a circle. They cannot be evaluated, so they deny. */
export class CircularRules extends Error {}

/**
 * Whether a check allows the request.
 *
 * @param within the names of the rules that are being evaluated already.
 * @throws CircularRules where a rule refers to itself, directly or through other rules.
 */
export function evaluate(check: Check, circumstances: Circumstances, within: readonly string[] = []): boolean {
  switch (check.type) {
    case 'allow':
      return true;
    case 'deny':
      return false;
    case 'not':
      return !evaluate(check.check, circumstances, within);
    case 'and':
      return check.checks.every((each) => evaluate(each, circumstances, within));
    case 'or':
      return check.checks.some((each) => evaluate(each, circumstances, within));
    default:
      return evaluateMatch(check, circumstances, within);
  }
}

function evaluateMatch(
  { kind, match }: Extract<Check, { type: 'match' }>,
  circumstances: Circumstances,
  within: readonly string[],
): boolean {
  const { credentials, target } = circumstances;
  if (kind === 'rule') {
    if (within.includes(match)) throw new CircularRules([...within, match].join(' -> '));
    const check = circumstances.rule(match);
    return check !== undefined && evaluate(check, circumstances, [...within, match]);
  }
  const wanted = fillTemplate(match, target);
  if (wanted === undefined) return false;
  if (kind === 'role') {
    const { roles } = credentials;
    return Array.isArray(roles) && roles.some((role) => String(role).toLowerCase() === wanted.toLowerCase());
  }
  const literal = literalText(kind);
  return literal === undefined ? isFound(credentials, kind.split('.'), wanted) : literal === wanted;
}

/** Follows a path into the credentials. Where there is a list on the way, any of its elements may match. */
function isFound(value: Value, [key, ...rest]: readonly string[], wanted: string): boolean {
  if (key === undefined) return pythonText(value) === wanted;
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !Object.hasOwn(value, key)) return false;
  const found = (value as Values)[key] ?? null; // neither null nor a list, so an object
  return Array.isArray(found) ? found.some((each) => isFound(each, rest, wanted)) : isFound(found, rest, wanted);
}
