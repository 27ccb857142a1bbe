import type * as v from 'valibot';
import { nearName } from '../text/strings.ts';

type Issue = v.BaseIssue<unknown>;

/** What a check has found: one issue or more. */
export type Issues = readonly [Issue, ...Issue[]];

/** A message that names the rule that failed; complaintOf adds the path and the value. */
export const failed =
  (keyword: string, sentence: (value: string) => string) =>
  (issue: Issue): string =>
    `${sentence(pythonRepr(issue.input))}\n\nFailed validating '${keyword}'`;

/** The one fault of a value that is reported, where there may be several. */
export type Fault = {
  /** What is wrong; then, after an empty line, the rule that failed. */
  readonly sentence: string;
  /** The path of the fault, and the value there. */
  readonly path: readonly (string | number)[];
  readonly value: unknown;
};

/** The fault that is nested the least, which upstream's JSON Schema library reports as well. */
export function chiefFault(issues: Issues): Fault {
  const [head] = issues;
  const faults = issues.map((issue) => ({ issue, path: pathOf(issue) }));
  const depth = faults.reduce((least, { path }) => Math.min(least, path.length), Number.POSITIVE_INFINITY);
  const shallow = faults.filter(({ path }) => path.length === depth);
  const { issue, path } = shallow[0] ?? { issue: head, path: pathOf(head) };
  const siblings = shallow.map((each) => each.issue).filter((each) => sameKind(each, issue));
  return { sentence: sentenceOf(issue, siblings), path, value: inputAt(issue, path.length) };
}

/**
 * The complaint about a value in the words of upstream: what is wrong, the rule, the path in the schema, and the path
 * and value in the body.
 */
export function complaintOf(issues: Issues): string {
  const { sentence, path, value } = chiefFault(issues);
  const instancePath = path.map((key) => `[${pythonRepr(key)}]`).join('');
  const schemaPath = path
    .map((key) => (typeof key === 'number' ? "['items']" : `['properties'][${pythonRepr(key)}]`))
    .join('');
  return `${sentence} in schema${schemaPath}\n\nOn instance${instancePath}:\n    ${pythonRepr(value)}`;
}

/**
 * The complaint about a value in plain sentences, without the rule and the schema, and with null, true and false as JSON has them. An
 * unknown name may be the cause of a missing one, so the text has both.
 *
 * @param namesAt the names that an object at a path of the value may have
 */
export function complaintSentence(issues: Issues, namesAt: (path: Fault['path']) => readonly string[]): string {
  const fault = chiefFault(issues);
  const { path, value } = fault;
  const isWord = value === null || typeof value === 'boolean';
  const sentence = isWord ? fault.sentence.replace(/^(None|True|False)/, String(value)) : fault.sentence;
  const beginning = path.length === 0 ? '' : `${path.join('.')}: `;
  const unknown = issues.find((issue) => isUnknownKey(issue) && pathOf(issue).length === path.length);
  const sentences = [sentence, ...(unknown === undefined ? [] : [unknown.message])].map((each) =>
    plainSentence(each, namesAt(path)),
  );
  return beginning + [...new Set(sentences)].join(' ');
}

const unknownKeys =
  /^(?:Additional properties are not allowed \((.*) (?:was|were) unexpected\)|(.*) do(?:es)? not match any of the regexes: (.*))$/s;
const capitals = 'capital letters, digits and _';
/** Fields of answers that a request may send back, and that are ignored there. A misspelled field is not taken for one of them. */
const echoed: readonly string[] = ['etag', 'expires_at', 'created_at', 'updated_at'];

function plainSentence(sentence: string, names: readonly string[]): string {
  const [rule = ''] = sentence.split('\n\nFailed validating');
  const [, unexpected, unmatched, patterns = ''] = unknownKeys.exec(rule) ?? [];
  const keys = unexpected ?? unmatched;
  if (keys === undefined) {
    const problem = rule.startsWith("''") ? `is empty: it must have ${capitals}` : `has more than ${capitals}`;
    return `${rule
      .replace(/ does not match '\^\(?\[A-Z0-9_\]\+.*'$/s, ` ${problem}`)
      .replace(/ does not match '\^CUSTOM_\[A-Z0-9_\]\+\$'$/s, ` does not begin with CUSTOM_, or ${problem}`)}.`;
  }
  if (patterns === "'^[0-9a-fA-F-]{36}$'") return `${keys} is no UUID, and names do not stand for UUIDs here.`;
  if (/^'\^\[A-Z0-9_\]\+\$'$/.test(patterns)) return `${keys} is no name, which has ${capitals} only.`;
  // The pattern of a parameter is its name and the suffix that may follow.
  const known = [...names, ...[...patterns.matchAll(/'\^([a-z_]+)/g)].map(([, name = '']) => name)];
  if (known.length === 0) return `${keys} is not allowed${patterns === '' ? '' : `: a name must match ${patterns}`}.`;
  const written = keys.replaceAll("'", '');
  const meaningful = known.filter((name) => !echoed.includes(name));
  const near = nearName(written, meaningful) ?? known.find((name) => name.startsWith(`${written}_`));
  const meant = near === undefined ? '' : ` Did you mean '${near}'?`;
  return `${keys} is unknown.${meant} Known are ${[...new Set(known)].toSorted().join(', ')}.`;
}

/** The path of an issue. A missing or unexpected key is a fault of its object. */
function pathOf(issue: Issue): (string | number)[] {
  const path = issue.path ?? [];
  const last = path.at(-1);
  const ofObject = last !== undefined && 'origin' in last && last.origin === 'key';
  return path.slice(0, ofObject ? -1 : undefined).map(({ key }) => (typeof key === 'number' ? key : String(key)));
}

const keyOf = (issue: Issue): string => pythonRepr(issue.path?.at(-1)?.key);
const isMissingKey = (issue: Issue): boolean => issue.type === 'strict_object' && issue.received === 'undefined';
const isUnknownKey = (issue: Issue): boolean => issue.type === 'strict_object' && issue.expected === 'never';
/** The message of such an issue is the list of patterns; see keyed. */
const isBadKey = (issue: Issue): boolean => {
  const last = issue.path?.at(-1);
  return issue.kind === 'validation' && last !== undefined && 'origin' in last && last.origin === 'key';
};
const sameKind = (a: Issue, b: Issue): boolean => isUnknownKey(a) === isUnknownKey(b) && isBadKey(a) === isBadKey(b);

/** The complaint about an object with unexpected keys, in upstream's words. */
export const unexpectedText = (keys: readonly string[]): string =>
  `Additional properties are not allowed (${namesText(keys)} ${keys.length === 1 ? 'was' : 'were'} unexpected)`;

/** Names, separated by commas; cut where they are long, as values are. */
export function namesText(names: readonly string[], each: (name: string) => string = pythonRepr): string {
  const text = joined(names, maxReprLength, each);
  return text.length > maxReprLength ? `${text.slice(0, maxReprLength)}...` : text;
}

/** The message of a schema for an object with unexpected keys. */
export const unexpectedKeys = (keys: readonly string[]): string =>
  `${unexpectedText(keys)}\n\nFailed validating 'additionalProperties'`;

function sentenceOf(issue: Issue, siblings: readonly Issue[]): string {
  if (isMissingKey(issue)) return `${keyOf(issue)} is a required property\n\nFailed validating 'required'`;
  if (isBadKey(issue)) {
    const keys = namesText(siblings.map((sibling) => String(sibling.path?.at(-1)?.key)));
    const verb = siblings.length === 1 ? 'does' : 'do';
    return `${keys} ${verb} not match any of the regexes: ${issue.message}\n\nFailed validating 'additionalProperties'`;
  }
  return issue.message;
}

function inputAt(issue: Issue, depth: number): unknown {
  const item = issue.path?.[depth];
  return item === undefined ? issue.input : item.input;
}

const maxReprLength = 1000;

/**
 * A JSON value as Python prints it, cut where it is long; values that are nested too deep to be shown are not visited.
 */
export function pythonRepr(value: unknown): string {
  const text = repr(value, maxReprLength);
  return text.length > maxReprLength ? `${text.slice(0, maxReprLength)}...` : text;
}

/** @param room how many characters are needed; the result may be longer. */
function repr(value: unknown, room: number): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return quoted(value, room);
  if (Array.isArray(value)) return `[${joined(value, room, (item, left) => repr(item, left))}]`;
  if (typeof value === 'object') {
    return `{${joined(Object.entries(value), room, ([key, item], left) => `${quoted(key, left)}: ${repr(item, left)}`)}}`;
  }
  return String(value);
}

/** The items for which there is room, and one more. */
function joined<Item>(items: readonly Item[], room: number, each: (item: Item, room: number) => string): string {
  let text = '';
  for (const item of items) {
    if (text.length >= room) break;
    text += `${text === '' ? '' : ', '}${each(item, room - text.length - 1)}`;
  }
  return text;
}

/** @param room how many characters are needed; the result may be longer, and has no more of a long text than that. */
const quoted = (text: string, room: number): string => {
  const escaped = JSON.stringify(text.slice(0, room + 1))
    .slice(1, -1)
    .replaceAll('\\"', '"');
  return text.includes("'") && !text.includes('"') ? `"${escaped}"` : `'${escaped.replaceAll("'", "\\'")}'`;
};
