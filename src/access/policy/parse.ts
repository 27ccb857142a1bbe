import { allow, type Check, deny, isTemplate } from './evaluate.ts';

/** A rule that was read, malformed or not. */
export type ParsedRule = {
  readonly check: Check;
  /**
   * What is malformed, one sentence for each problem. A malformed check allows nothing, also behind `not`, and a rule
   * that cannot be parsed denies every request.
   */
  readonly problems: readonly string[];
};

/**
 * Reads a rule as oslo.policy does: a text in the rule language, or the older list, whose items are joined by "or" and
 * each of them a check or a list of checks, joined by "and".
 *
 * In a text `not` binds more than `and`, `and` more than `or`, in upper or lower case. Parentheses are recognised at
 * the ends of words only, since `%(key)s` has some, too. The empty text and the empty list allow every request.
 */
export function parseRule(rule: string | readonly (string | readonly string[])[]): ParsedRule {
  const problems: string[] = [];
  const check = typeof rule === 'string' ? parseText(rule, problems) : parseList(rule, problems);
  return { check, problems };
}

/** A rule or a check in a message, which need not have all of it. */
const shown = (text: string): string =>
  text.length > 200 ? `${JSON.stringify(text.slice(0, 200))} (and so on)` : JSON.stringify(text);

/** How many parentheses and `not` may be around a check: they are read and printed by recursion. */
const maxDepth = 200;

type Token =
  | { readonly type: 'and' | 'or' | 'not' | '(' | ')' }
  | { readonly type: 'check'; readonly check: Check }
  /** Quoted words are accepted and have no meaning. */
  | { readonly type: 'string' };

function parseText(text: string, problems: string[]): Check {
  if (text === '') return allow;
  const tokens = tokenize(text, problems);
  const isDeep = depthOf(tokens) > maxDepth;
  const parsed = isDeep ? undefined : parseOr(tokens, 0);
  if (parsed !== undefined && parsed.next === tokens.length) return parsed.check;
  problems.push(
    `The rule ${shown(text)} cannot be parsed, so it denies: ` +
      (isDeep
        ? `around one check are more than ${maxDepth} parentheses and not.`
        : 'write checks such as role:admin, joined by and, or and not, and close every parenthesis.'),
  );
  return { type: 'broken', text };
}

/** How many parentheses and `not` are around a check at most. */
function depthOf(tokens: readonly Token[]): number {
  let deepest = 0;
  let depth = 0;
  /** The depth of what comes next in the group, but for each `not` before it; and those of the groups around. */
  let own = 0;
  const around: number[] = [];
  for (const { type } of tokens) {
    if (type === 'not') depth += 1;
    else if (type === '(') {
      around.push(own);
      depth += 1;
      own = depth;
    } else {
      if (type === ')') own = around.pop() ?? 0;
      depth = own;
    }
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

/** The words of the rule; parentheses at the ends of a word stand for themselves. */
function tokenize(text: string, problems: string[]): readonly Token[] {
  return text.split(/\s+/).flatMap((word): Token[] => {
    const inner = word.replace(/^\(+/, '');
    let end = inner.length;
    while (inner[end - 1] === ')') end -= 1; // an expression for it would begin anew at each parenthesis inside
    const core = inner.slice(0, end);
    const opening = Array.from({ length: word.length - inner.length }, (): Token => ({ type: '(' }));
    const closing = Array.from({ length: inner.length - core.length }, (): Token => ({ type: ')' }));
    return [...opening, ...(core === '' ? [] : [tokenOf(core, inner, problems)]), ...closing];
  });
}

function tokenOf(core: string, withClosing: string, problems: string[]): Token {
  const operator = core.toLowerCase();
  if (operator === 'and' || operator === 'or' || operator === 'not') return { type: operator };
  if (/^(?:".*"|'.*')$/s.test(withClosing) && withClosing.length >= 2) return { type: 'string' };
  return { type: 'check', check: parseCheck(core, problems) };
}

type Parsed = { readonly check: Check; readonly next: number } | undefined;

const parseOr = (tokens: readonly Token[], at: number): Parsed => parseChain(tokens, at, 'or', parseAnd);
const parseAnd = (tokens: readonly Token[], at: number): Parsed => parseChain(tokens, at, 'and', parseNot);

function parseChain(
  tokens: readonly Token[],
  at: number,
  type: 'and' | 'or',
  parseOperand: (tokens: readonly Token[], at: number) => Parsed,
): Parsed {
  const first = parseOperand(tokens, at);
  if (first === undefined) return undefined;
  const checks = [first.check];
  let { next } = first;
  while (tokens[next]?.type === type) {
    const operand = parseOperand(tokens, next + 1);
    if (operand === undefined) return undefined;
    checks.push(operand.check);
    next = operand.next;
  }
  return { check: checks.length === 1 ? first.check : { type, checks }, next };
}

function parseNot(tokens: readonly Token[], at: number): Parsed {
  const token = tokens[at];
  if (token?.type === 'check') return { check: token.check, next: at + 1 };
  if (token?.type === 'not') {
    const negated = parseNot(tokens, at + 1);
    return negated && { check: { type: 'not', check: negated.check }, next: negated.next };
  }
  if (token?.type !== '(') return undefined;
  const inner = parseOr(tokens, at + 1);
  return inner !== undefined && tokens[inner.next]?.type === ')'
    ? { check: inner.check, next: inner.next + 1 }
    : undefined;
}

function parseList(list: readonly (string | readonly string[])[], problems: string[]): Check {
  if (list.length === 0) return allow;
  const alternatives = list
    .filter((item) => item.length > 0)
    .map((item) =>
      join(
        'and',
        (typeof item === 'string' ? [item] : item).map((text) => parseCheck(text, problems)),
      ),
    );
  return join('or', alternatives);
}

function join(type: 'and' | 'or', checks: readonly Check[]): Check {
  const [first = deny] = checks;
  return checks.length > 1 ? { type, checks } : first;
}

/** Kinds of checks for which oslo.policy asks a server. This service does not. */
const remoteKinds: readonly string[] = ['http', 'https'];

function parseCheck(text: string, problems: string[]): Check {
  if (text === '@') return allow;
  if (text === '!') return deny;
  const colon = text.indexOf(':');
  const [kind, match] = [text.slice(0, colon), text.slice(colon + 1)];
  const problem =
    colon < 1
      ? 'it is not of the form kind:match, such as role:admin'
      : remoteKinds.includes(kind)
        ? 'rules that ask another server are not supported'
        : kind !== 'rule' && !isTemplate(match)
          ? 'after a percent sign must come (name)s, or another percent sign'
          : undefined;
  if (problem === undefined) return { type: 'match', kind, match };
  problems.push(`The check ${shown(text)} denies, since ${problem}.`);
  return { type: 'broken', text };
}
