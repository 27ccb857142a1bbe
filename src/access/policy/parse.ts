import { createRequire } from 'node:module';
import type { Document, Node, YAMLError } from 'yaml';
import { allow, type Check, deny, isTemplate } from './evaluate.ts';

/** A rule that was read, malformed or not. */
type ParsedRule = {
  readonly check: Check;
  /**
   * The malformed rules, one sentence for each problem. A malformed check allows nothing, also behind `not`, and a rule
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

type RuleToken =
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
function depthOf(tokens: readonly RuleToken[]): number {
  let deepest = 0;
  let depth = 0;
  /** The depth of the next operand of the group, without each `not` before it; then the depths of the groups around it. */
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
function tokenize(text: string, problems: string[]): readonly RuleToken[] {
  return text.split(/\s+/).flatMap((word): RuleToken[] => {
    const inner = word.replace(/^\(+/, '');
    let end = inner.length;
    while (inner[end - 1] === ')') end -= 1; // a regular expression would restart at each parenthesis inside
    const core = inner.slice(0, end);
    const opening = Array.from({ length: word.length - inner.length }, (): RuleToken => ({ type: '(' }));
    const closing = Array.from({ length: inner.length - core.length }, (): RuleToken => ({ type: ')' }));
    return [...opening, ...(core === '' ? [] : [tokenOf(core, inner, problems)]), ...closing];
  });
}

function tokenOf(core: string, withClosing: string, problems: string[]): RuleToken {
  const operator = core.toLowerCase();
  if (operator === 'and' || operator === 'or' || operator === 'not') return { type: operator };
  if (/^(?:".*"|'.*')$/s.test(withClosing) && withClosing.length >= 2) return { type: 'string' };
  return { type: 'check', check: parseCheck(core, problems) };
}

type Parsed = { readonly check: Check; readonly next: number } | undefined;

const parseOr = (tokens: readonly RuleToken[], at: number): Parsed => parseChain(tokens, at, 'or', parseAnd);
const parseAnd = (tokens: readonly RuleToken[], at: number): Parsed => parseChain(tokens, at, 'and', parseNot);

function parseChain(
  tokens: readonly RuleToken[],
  at: number,
  type: 'and' | 'or',
  parseOperand: (tokens: readonly RuleToken[], at: number) => Parsed,
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

function parseNot(tokens: readonly RuleToken[], at: number): Parsed {
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

/** Kinds of checks for which oslo.policy calls a server. This service does not. */
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

type Yaml = typeof import('yaml');

/**
 * The library is loaded by the first policy file, since most services have none. By `require`, because policy files are read between two
 * steps of a request, which cannot wait.
 */
const requireHere = createRequire(import.meta.url);
const yaml = (): Yaml => requireHere('yaml') as Yaml; // the package exports one build for both ways to load it

/** The rules of a policy file, or why it cannot be used. */
type ParsedFile = {
  readonly rules: readonly FileRule[];
  /** Why the file cannot be used, one sentence for each reason; then there are no rules. */
  readonly problems: readonly string[];
  /** Mistakes in single rules, which deny for that reason. */
  readonly warnings: readonly string[];
};

/**
 * Reads a policy file: a YAML mapping (JSON is YAML, too) of names to rules in the rule language, or in the older form
 * of lists. As with oslo.policy the last of several rules of one name counts, and a rule without a value allows every
 * request.
 *
 * @param file its name, for messages.
 */
export function parsePolicyFile(text: string, file: string): ParsedFile {
  const { isMap, isNode, isScalar, LineCounter, parseDocument } = yaml();
  const broken = (problems: readonly string[]): ParsedFile => ({ rules: [], problems, warnings: [] });
  const lines = new LineCounter();
  const at = (offset = 0): string => {
    const { line, col } = lines.linePos(offset);
    return `${file}:${line}:${col}`;
  };
  // YAML 1.1 is what PyYAML reads.
  const document = parseDocument(text, { version: '1.1', uniqueKeys: false, prettyErrors: false, lineCounter: lines });
  // Further errors are mostly consequences of the first.
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) return broken([`${at(fault.pos[0])}: ${sentenceOf(fault)}`]);
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) return broken([]);
  if (!isMap(contents)) {
    return broken([`${at(contents.range?.[0])}: A policy file must be a mapping of rule names to rules.`]);
  }
  const alias = unknownAlias(document);
  if (alias !== undefined) {
    return broken([`${at(alias.range?.[0])}: No value before has the anchor of this alias (*).`]);
  }

  const problems: string[] = [];
  const malformed: string[] = [];
  // If a name has several values, the last one counts, as in toJS.
  const nodes = new Map(contents.items.map(({ key, value }) => [String(isScalar(key) ? key.value : key), value]));
  // toJS resolves aliases and merges; the nodes are needed only to see how a value was written.
  const rules = Object.entries(document.toJS() as Readonly<Record<string, unknown>>).flatMap(([name, value]) => {
    const written = nodes.get(name);
    const where = (): string => (isNode(written) ? at(written.range?.[0]) : file);
    if (isBareTag(written)) {
      problems.push(
        `${where()}: ${name} has an exclamation mark without quotes, which YAML ignores. Write "!" to deny.`,
      );
      return [];
    }
    const rule = value ?? '';
    if (!isRule(rule)) {
      problems.push(
        `${where()}: ${name} must be a rule in quotes, such as "role:admin", or a list of lists of checks.`,
      );
      return [];
    }
    const parsed = parseRule(rule);
    for (const problem of parsed.problems) malformed.push(`${name}: ${problem}`);
    return [{ name, check: parsed.check, file }];
  });
  if (problems.length > 0) {
    return broken(
      firstOf(
        problems,
        (problem) => problem,
        (others) => `${file}: ${others} more rules are of these kinds.`,
      ),
    );
  }
  const warnings = firstOf(
    malformed,
    (problem) => `${file}: ${problem}`,
    (others) => `${file}: ${others} more rules and checks are malformed, so they deny.`,
  );
  return { rules, problems, warnings };
}

type WrittenRule = string | readonly (string | readonly string[])[];

function isRule(value: unknown): value is WrittenRule {
  const isText = (part: unknown): part is string => typeof part === 'string';
  return (
    isText(value) ||
    (Array.isArray(value) && value.every((item) => isText(item) || (Array.isArray(item) && item.every(isText))))
  );
}

/** An exclamation mark that is not in quotes is a tag: the value behind it is empty, and an empty rule allows. */
const isBareTag = (node: unknown): boolean => yaml().isNode(node) && node.tag === '!';

/** An alias whose anchor no value before it has. */
function unknownAlias(document: Document): Node | undefined {
  const { visit } = yaml();
  // The library would search the whole document for each anchor.
  const anchors = new Set<string>();
  let found: Node | undefined;
  visit(document, {
    Node: (_, node) => {
      if ('anchor' in node && node.anchor !== undefined) anchors.add(node.anchor);
    },
    Alias: (_, alias) => {
      if (anchors.has(alias.source)) return undefined;
      found = alias;
      return visit.BREAK;
    },
  });
  return found;
}

/** The mistake in a text that is not valid YAML, and the remedy, by the error code of the parser. */
const sentences: Readonly<Record<YAMLError['code'], string>> = {
  ALIAS_PROPS: 'An alias (*) can have neither an anchor (&) nor a tag (!).',
  BAD_ALIAS: 'An alias (*) or an anchor (&) has no name. Put a value that begins with * or & in quotes.',
  BAD_COLLECTION_TYPE: 'The tag (!) does not belong to this kind of value.',
  BAD_DIRECTIVE: 'YAML has no such directive. Put a name that begins with % in quotes.',
  BAD_DQ_ESCAPE: 'Double quotes have no such escape. Write \\\\ for a backslash.',
  BAD_INDENT: 'The indentation is not that of the lines before, or a bracket before it is not closed.',
  BAD_PROP_ORDER: 'An anchor (&) or a tag (!) is not in its place before the value.',
  BAD_SCALAR_START: 'A value cannot begin with this character. Put it in quotes.',
  BLOCK_AS_IMPLICIT_KEY:
    'A second name begins inside a rule. Put rules in quotes, and begin all names in the same column.',
  BLOCK_IN_FLOW: 'A comma is missing in brackets, or a bracket is not closed.',
  DUPLICATE_KEY: 'The same name is there twice.',
  IMPOSSIBLE: 'This is not YAML.',
  KEY_OVER_1024_CHARS: 'A name has more than 1024 characters.',
  MISSING_CHAR: 'A quote or a bracket is not closed, or the colon behind a name is missing.',
  MULTILINE_IMPLICIT_KEY: 'A name must be in one line, with a colon behind it. A quote may not be closed.',
  MULTIPLE_ANCHORS: 'A value can have only one anchor (&).',
  MULTIPLE_DOCS: 'A second document begins (---). A policy file has only one.',
  MULTIPLE_TAGS: 'A value can have only one tag (!).',
  NON_STRING_KEY: 'A name must be a text.',
  RESOURCE_EXHAUSTION: 'The text is too long or nested too deep.',
  TAB_AS_INDENT: 'There is a tab. Indent with spaces.',
  TAG_RESOLVE_FAILED: 'There is no such tag (!). Put a value that begins with ! in quotes.',
  UNEXPECTED_TOKEN:
    'This cannot follow here. Put rules in quotes, each in a line of its own behind its name and a colon.',
};

/** The sentence for an error of the parser. */
const sentenceOf = ({ code }: YAMLError): string => sentences[code] ?? sentences.IMPOSSIBLE;

/** How many sentences of a kind are made: more are not worth reading, and 100,000 of them would block the process. */
const sentencesShown = 100;

/**
 * A sentence for each of the first items, and one for the rest.
 *
 * @param sentence is called for the first 100 items only.
 * @param summary the sentence for the rest, by their number
 */
export function firstOf<T>(
  items: readonly T[],
  sentence: (item: T) => string,
  summary: (others: number) => string,
): readonly string[] {
  const sentences = items.slice(0, sentencesShown).map(sentence);
  return items.length > sentencesShown ? [...sentences, summary(items.length - sentencesShown)] : sentences;
}

/** A rule of a policy file. */
export type FileRule = { readonly name: string; readonly check: Check; readonly file: string };
