import { lstatSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { messageOf } from '../../text/print.ts';
import { ruleComplaints } from './complaints.ts';
import { parsePolicyFile } from './parse_file.ts';
import { assembleRules, type FileRule, type RuleSettings, type Rules } from './rules.ts';

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
  /** The folders that exist. */
  readonly folders: readonly string[];
  /** It is another text after a file was changed, added or removed. */
  readonly fingerprint: string;
  /** Whether the last change is so recent that another change might leave the times of the files as they are. */
  readonly unsettled: boolean;
};

/** The rules of the defaults and the policy files together, or why the files cannot be used. */
export type ReadRules =
  | {
      readonly rules: Rules;
      readonly warnings: readonly string[];
      /** The files that contain nothing at all. */
      readonly empty: readonly string[];
    }
  /** Why the files cannot be used, one sentence for each reason; whether a file could not even be read. */
  | { readonly problems: readonly string[]; readonly isUnread: boolean };

/** File systems note times with a precision of some milliseconds only. */
const settledAfterMs = 100;

/** Which policy files there are. @throws Error where a folder cannot be read, or a link leads to no file. */
export function findPolicyFiles({ policyFile, policyDirs }: PolicySettings): PolicyFiles {
  const now = Date.now();
  let unsettled = false;
  const files: string[] = [];
  const marks: string[] = [];
  const mark = (name: string, stats: Stats): void => {
    unsettled ||= Math.abs(now - stats.mtimeMs) < settledAfterMs;
    marks.push(`${name}\0${stats.mtimeMs}\0${stats.ctimeMs}\0${stats.size}\0${stats.ino}`);
  };
  const main = statOf(policyFile);
  if (main !== undefined) {
    files.push(policyFile);
    mark(policyFile, main);
  }
  const folders: string[] = [];
  for (const folder of policyDirs) {
    const stats = statOf(folder);
    if (stats === undefined) continue;
    folders.push(folder);
    mark(folder, stats);
    for (const name of readdirSync(folder).sort()) {
      const file = path.join(folder, name);
      const of = name.startsWith('.') ? undefined : statOf(file);
      if (of === undefined || of.isDirectory()) continue;
      files.push(file);
      mark(file, of);
    }
  }
  return { files, folders, fingerprint: marks.join('\n'), unsettled };
}

/** undefined where there is nothing of that name. @throws Error where it is a link that leads to nothing. */
function statOf(name: string): Stats | undefined {
  const stats = statSync(name, { throwIfNoEntry: false });
  if (stats === undefined && lstatSync(name, { throwIfNoEntry: false })?.isSymbolicLink()) {
    throw new Error(`${name} is a link to a file that does not exist`);
  }
  return stats;
}

/** Reads the rules of these files, on top of the defaults. */
export function readRules(files: readonly string[], settings: RuleSettings): ReadRules {
  const read = files.map((file) => {
    try {
      const text = readUtf8(file);
      return { ...parsePolicyFile(text, file), isUnread: false, isEmpty: text.trim() === '', file };
    } catch (error) {
      const problems = [`The policy file ${file} cannot be read: ${messageOf(error)}.`];
      return { rules: [], warnings: [], problems, isUnread: true, isEmpty: false, file };
    }
  });
  const problems = read.flatMap((each) => each.problems);
  if (problems.length > 0) return { problems, isUnread: read.some(({ isUnread }) => isUnread) };
  const fileRules: readonly FileRule[] = read.flatMap((each) => each.rules);
  const rules = assembleRules(fileRules, settings);
  const empty = read.filter(({ isEmpty }) => isEmpty).map(({ file }) => file);
  return { rules, empty, warnings: [...read.flatMap(({ warnings }) => warnings), ...ruleComplaints(rules)] };
}

function readUtf8(file: string): string {
  const bytes = readFileSync(file);
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new Error('it is not UTF-8');
  }
}
