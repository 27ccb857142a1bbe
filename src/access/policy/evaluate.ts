import type { Check } from './check.ts';
import { fillTemplate, literalText, pythonText, type Value, type Values } from './template.ts';

/** The values that a check is evaluated with. */
export type Circumstances = {
  /** Of the request's identity: `user_id`, `project_id`, `roles` and so on (`./credentials.ts`). */
  readonly credentials: Values;
  /** Of what the request is about: `project_id`, `user_id`. */
  readonly target: Values;
  /** The check of another rule, for `rule:name`; undefined where there is none. */
  readonly rule: (name: string) => Check | undefined;
};

/** Rules that refer to each other in a circle. They cannot be evaluated, so they deny. */
export class CircularRules extends Error {}

/**
 * Whether a check holds; undefined where that cannot be told, since a check is malformed, or asks for a rule or a value
 * that does not exist. A request is allowed only by true. So what is unknown allows nothing behind a `not` either, and
 * takes nothing away where the other checks decide: `role:admin or rule:unknown` allows administrators.
 *
 * @param within the names of the rules that are being evaluated already.
 * @throws CircularRules where a rule refers to itself, directly or through other rules.
 */
export function evaluate(
  check: Check,
  circumstances: Circumstances,
  within: readonly string[] = [],
): boolean | undefined {
  switch (check.type) {
    case 'allow':
      return true;
    case 'deny':
      return false;
    case 'broken':
      return undefined;
    case 'not': {
      const result = evaluate(check.check, circumstances, within);
      return result === undefined ? undefined : !result;
    }
    case 'and':
    case 'or':
      return evaluateAll(check, circumstances, within);
    default:
      return evaluateMatch(check, circumstances, within);
  }
}

/** One check that is false decides an `and`, one that is true an `or`, also if others are unknown. */
function evaluateAll(
  { type, checks }: Extract<Check, { type: 'and' | 'or' }>,
  circumstances: Circumstances,
  within: readonly string[],
): boolean | undefined {
  const decisive = type === 'or';
  let result: boolean | undefined = !decisive;
  for (const check of checks) {
    const each = evaluate(check, circumstances, within);
    if (each === decisive) return decisive;
    if (each === undefined) result = undefined;
  }
  return result;
}

function evaluateMatch(
  { kind, match }: Extract<Check, { type: 'match' }>,
  circumstances: Circumstances,
  within: readonly string[],
): boolean | undefined {
  const { credentials, target } = circumstances;
  if (kind === 'rule') {
    if (within.includes(match)) throw new CircularRules([...within, match].join(' -> '));
    const check = circumstances.rule(match);
    return check === undefined ? undefined : evaluate(check, circumstances, [...within, match]);
  }
  const literal = literalText(kind);
  // A request that is about no project is not about that of a token which has none.
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
