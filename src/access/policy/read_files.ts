import { readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { messageOf } from '../../text/message_of.ts';
import { parsePolicyFile } from './parse_file.ts';
import { assembleRules, type FileRule, type RuleSettings, type Rules, ruleComplaints } from './rules.ts';

/** `[oslo_policy]`, with absolute paths. */
export type PolicySettings = RuleSettings & {
  /** It need not exist. */
  readonly policyFile: string;
  /** Folders whose files, except hidden ones, are read in the order of their names. The folders need not exist. */
  readonly policyDirs: readonly string[];
};

/** The policy files at one moment. */
export type PolicyFiles = {
  /** In the order in which they are read: rules of a later file replace those of an earlier one. */
  readonly files: readonly string[];
  /** It is another text after a file was changed, added or removed. */
  readonly fingerprint: string;
  /** Whether the last change is so recent that another change might leave the times of the files as they are. */
  readonly unsettled: boolean;
};

/** The rules of the defaults and the policy files together, or why the files cannot be used. */
export type ReadRules =
  | { readonly rules: Rules; readonly warnings: readonly string[] }
  /** Why the files cannot be used, one sentence for each reason. */
  | { readonly problems: readonly string[] };

/** File systems note times with a precision of some milliseconds only. */
const settledAfterMs = 100;

/** Which policy files there are. @throws Error where a folder cannot be read. */
export function findPolicyFiles({ policyFile, policyDirs }: PolicySettings): PolicyFiles {
  const now = Date.now();
  let unsettled = false;
  const files: string[] = [];
  const marks: string[] = [];
  const mark = (name: string, stats: Stats): void => {
    unsettled ||= Math.abs(now - stats.mtimeMs) < settledAfterMs;
    marks.push(`${name}\0${stats.mtimeMs}\0${stats.ctimeMs}\0${stats.size}\0${stats.ino}`);
  };
  const main = statSync(policyFile, { throwIfNoEntry: false });
  if (main !== undefined) {
    files.push(policyFile);
    mark(policyFile, main);
  }
  for (const folder of policyDirs) {
    const stats = statSync(folder, { throwIfNoEntry: false });
    if (stats === undefined) continue;
    mark(folder, stats);
    for (const name of readdirSync(folder).sort()) {
      const file = path.join(folder, name);
      const of = name.startsWith('.') ? undefined : statSync(file, { throwIfNoEntry: false });
      if (of === undefined || of.isDirectory()) continue;
      files.push(file);
      mark(file, of);
    }
  }
  return { files, fingerprint: marks.join('\n'), unsettled };
}

/** Reads the rules of these files, on top of the defaults. */
export function readRules(files: readonly string[], settings: RuleSettings): ReadRules {
  const read = files.map((file) => {
    try {
      return parsePolicyFile(readUtf8(file), file);
    } catch (error) {
      const reason = messageOf(error);
      return { rules: [], warnings: [], problems: [`The policy file ${file} cannot be read: ${reason}.`] };
    }
  });
  const problems = read.flatMap((each) => each.problems);
  if (problems.length > 0) return { problems };
  const fileRules: readonly FileRule[] = read.flatMap((each) => each.rules);
  const rules = assembleRules(fileRules, settings);
  return { rules, warnings: [...read.flatMap(({ warnings }) => warnings), ...ruleComplaints(rules)] };
}

function readUtf8(file: string): string {
  const bytes = readFileSync(file);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8');
  }
}
