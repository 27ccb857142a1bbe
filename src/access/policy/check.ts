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
export function referredRules(check: Check): readonly string[] {
  switch (check.type) {
    case 'match':
      return check.kind === 'rule' ? [check.match] : [];
    case 'not':
      return referredRules(check.check);
    case 'and':
    case 'or':
      return check.checks.flatMap(referredRules);
    default:
      return [];
  }
}
