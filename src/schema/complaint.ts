import type * as v from 'valibot';

type Issue = v.BaseIssue<unknown>;

/** A message that names the rule that failed; complaintOf adds the place and the value. */
export const failed =
  (keyword: string, sentence: (value: string) => string) =>
  (issue: Issue): string =>
    `${sentence(pythonRepr(issue.input))}\n\nFailed validating '${keyword}'`;

/** What is wrong with a value, of several things the one that is told. */
export type Fault = {
  /** What is wrong, and behind an empty line the rule that failed. */
  readonly sentence: string;
  /** Where in the value, and what is there. */
  readonly path: readonly (string | number)[];
  readonly value: unknown;
};

/** One fault out of many: the shallowest, as the JSON Schema library of upstream picks it. */
export function chiefFault(issues: readonly [Issue, ...Issue[]]): Fault {
  const [head] = issues;
  const faults = issues.map((issue) => ({ issue, path: placeOf(issue) }));
  const depth = Math.min(...faults.map(({ path }) => path.length));
  const shallow = faults.filter(({ path }) => path.length === depth);
  const { issue, path } = shallow[0] ?? { issue: head, path: placeOf(head) };
  const siblings = shallow.map((each) => each.issue).filter((each) => sameKind(each, issue));
  return { sentence: sentenceOf(issue, siblings), path, value: inputAt(issue, path.length) };
}

/**
 * The complaint about a value in the words of upstream: what is wrong, the rule, the place in the schema, and the place and
 * value in the body.
 */
export function complaintOf(issues: readonly [Issue, ...Issue[]]): string {
  const { sentence, path, value } = chiefFault(issues);
  const place = path.map((key) => `[${pythonRepr(key)}]`).join('');
  const schemaPlace = path
    .map((key) => (typeof key === 'number' ? "['items']" : `['properties'][${pythonRepr(key)}]`))
    .join('');
  return `${sentence} in schema${schemaPlace}\n\nOn instance${place}:\n    ${pythonRepr(value)}`;
}

/** Where an issue is. A missing or unexpected key is a fault of the object that lacks or has it. */
function placeOf(issue: Issue): (string | number)[] {
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

/** What is said of an object with keys that it should not have. */
export function unexpectedKeys(keys: readonly string[]): string {
  const were = keys.length === 1 ? 'was' : 'were';
  const named = keys.map(pythonRepr).join(', ');
  return `Additional properties are not allowed (${named} ${were} unexpected)\n\nFailed validating 'additionalProperties'`;
}

function sentenceOf(issue: Issue, siblings: readonly Issue[]): string {
  const keys = siblings.map(keyOf).join(', ');
  if (isMissingKey(issue)) return `${keyOf(issue)} is a required property\n\nFailed validating 'required'`;
  if (isBadKey(issue)) {
    const verb = siblings.length === 1 ? 'does' : 'do';
    return `${keys} ${verb} not match any of the regexes: ${issue.message}\n\nFailed validating 'additionalProperties'`;
  }
  return issue.message;
}

function inputAt(issue: Issue, depth: number): unknown {
  const item = issue.path?.[depth];
  return item === undefined ? issue.input : item.input;
}

/** A JSON value as Python prints it, cut where it is long. */
export function pythonRepr(value: unknown): string {
  const text = repr(value);
  return text.length > 1000 ? `${text.slice(0, 1000)}...` : text;
}

function repr(value: unknown): string {
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'string') return quoted(value);
  if (Array.isArray(value)) return `[${value.map(repr).join(', ')}]`;
  if (typeof value === 'object') {
    return `{${Object.entries(value)
      .map(([key, item]) => `${quoted(key)}: ${repr(item)}`)
      .join(', ')}}`;
  }
  return String(value);
}

const quoted = (text: string): string => {
  const escaped = JSON.stringify(text).slice(1, -1).replaceAll('\\"', '"');
  return text.includes("'") && !text.includes('"') ? `"${escaped}"` : `'${escaped.replaceAll("'", "\\'")}'`;
};
