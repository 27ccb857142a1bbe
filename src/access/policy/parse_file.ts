import { isMap, isNode, isScalar, parseDocument } from 'yaml';
import { parseRule } from './parse.ts';
import type { FileRule } from './rules.ts';

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
  const broken = (problems: readonly string[]): ParsedFile => ({ rules: [], problems, warnings: [] });
  // YAML 1.1 is what PyYAML reads.
  const document = parseDocument(text, { version: '1.1', uniqueKeys: false, prettyErrors: true });
  // Further errors are mostly consequences of the first.
  const [fault] = [...document.errors, ...document.warnings];
  if (fault !== undefined) return broken([`${file}:${fault.linePos?.[0].line ?? 1}: ${firstLine(fault.message)}`]);
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null)) return broken([]);
  if (!isMap(contents)) return broken([`${file}: a policy file must be a mapping of rule names to rules.`]);

  const problems: string[] = [];
  const warnings: string[] = [];
  // By toJS, which resolves aliases and merges; the nodes are needed only to see how a value was written.
  const rules = Object.entries(document.toJS() as Readonly<Record<string, unknown>>).flatMap(([name, value]) => {
    const written = contents.get(name, true);
    if (isBareTag(written)) {
      problems.push(`${file}: ${name} has an exclamation mark without quotes, which YAML ignores. Write "!" to deny.`);
      return [];
    }
    const rule = value ?? '';
    if (!isRule(rule)) {
      problems.push(`${file}: ${name} must be a rule in quotes, such as "role:admin", or a list of lists of checks.`);
      return [];
    }
    const parsed = parseRule(rule);
    warnings.push(...parsed.problems.map((problem) => `${file}: ${name}: ${problem}`));
    return [{ name, check: parsed.check, file }];
  });
  return problems.length > 0 ? broken(problems) : { rules, problems, warnings };
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
const isBareTag = (node: unknown): boolean => isNode(node) && node.tag === '!';

const firstLine = (message: string): string => `${message.split('\n')[0]?.replace(/ at line.*$/, '') ?? message}.`;
