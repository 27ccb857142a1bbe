import { createRequire } from 'node:module';
import type { Document, Node } from 'yaml';
import { firstOf } from './first_of.ts';
import { parseRule } from './parse.ts';
import type { FileRule } from './rules.ts';
import { sentenceOf } from './yaml_fault.ts';

type Yaml = typeof import('yaml');

/**
 * The library is loaded by the first policy file, since most services have none. By `require`, because policy files are read between two
 * steps of a request, which cannot wait.
 */
const requireHere = createRequire(import.meta.url);
const yaml = (): Yaml => requireHere('yaml') as Yaml; // the package exports one build for both ways to load it

/** The rules of a policy file, or why it cannot be used. */
export type ParsedFile = {
  readonly rules: readonly FileRule[];
  /** Why the file cannot be used, one sentence for each reason; then there are no rules. */
  readonly problems: readonly string[];
  /** What is malformed in single rules, which deny for that reason. */
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
    const place = (): string => (isNode(written) ? at(written.range?.[0]) : file);
    if (isBareTag(written)) {
      problems.push(
        `${place()}: ${name} has an exclamation mark without quotes, which YAML ignores. Write "!" to deny.`,
      );
      return [];
    }
    const rule = value ?? '';
    if (!isRule(rule)) {
      problems.push(
        `${place()}: ${name} must be a rule in quotes, such as "role:admin", or a list of lists of checks.`,
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

type Rule = string | readonly (string | readonly string[])[];

function isRule(value: unknown): value is Rule {
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
  // The library's own search for an anchor goes through the whole document.
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
