import { lstatSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs';
import path from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { ConfigError } from '../../config/config.ts';
import type { Identity } from '../../rest/identity.ts';
import { messageOf } from '../../text/print.ts';
import { ruleComplaints } from './complaints.ts';
import type { Values } from './evaluate.ts';
import { type FileRule, parsePolicyFile } from './parse.ts';
import { assembleRules, decide, decideForAny, type RuleSettings, type Rules } from './rules.ts';

/** `[oslo_policy]`, with absolute paths. */
export type PolicySettings = RuleSettings & {
  /** The policy file, which need not exist. */
  readonly policyFile: string;
  /** Folders whose files, except hidden ones, are read in the order of their names. The folders need not exist. */
  readonly policyDirs: readonly string[];
};

/** The policy files at one moment. */
type PolicyFiles = {
  /** In the order in which they are read: rules of a later file replace rules of an earlier one. */
  readonly files: readonly string[];
  /** The folders that exist. */
  readonly folders: readonly string[];
  /** A text that changes if a file is changed, added or removed. */
  readonly fingerprint: string;
  /** Whether the last change is so recent that another change might leave the times of the files as they are. */
  readonly unsettled: boolean;
};

/** The rules of the defaults and the policy files together, or why the files cannot be used. */
type ReadRules =
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
function findPolicyFiles({ policyFile, policyDirs }: PolicySettings): PolicyFiles {
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
function readRules(files: readonly string[], settings: RuleSettings): ReadRules {
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

/** Decides whether requests are allowed. */
export type Policy = {
  /** Whether the rule of this name allows the identity to do something to the target. An unknown rule denies. */
  allows(rule: string, identity: Identity, target: Values): boolean;
  /** Whether the rule of this name allows the identity, whatever the target is; undefined where that depends on the target. */
  allowsAny(rule: string, identity: Identity): boolean | undefined;
  /** Whether a policy file has the rule of this name. */
  isWritten(rule: string): boolean;
  /**
   * Reads the files again now, or the files that the present settings name.
   *
   * @returns why the rules stay as they were, one sentence for each reason
   */
  renew(settings: PolicySettings): readonly string[];
};

/** Where the policy reports that its files were read again, or cannot be used. */
export type PolicyLog = {
  readonly info: (line: string) => void;
  readonly warn: (line: string) => void;
  readonly error: (line: string) => void;
};

/** How often to check whether policy files have changed, in milliseconds. A check for each request took 7 % of a claim. */
const checkEveryMs = 100;

/**
 * The policy of the defaults and the policy files. Before a decision it checks whether files have changed, unless it has
 * done so in the last `everyMs`, and reads them again if so. While they are broken or cannot be read, or the policy file
 * or a folder has disappeared, or a file with rules is empty, the last good rules hold, and the log has the reason.
 *
 * @throws ConfigError if they are broken at the start.
 */
export function openPolicy(firstSettings: PolicySettings, log: PolicyLog, everyMs = checkEveryMs): Policy {
  let settings = firstSettings;
  let seen: PolicyFiles = findOrThrow(settings);
  const first = readFirst(seen, settings, log);
  let { rules } = first;
  /** What the rules were read from. */
  let inForce = { files: seen.files, folders: seen.folders, empty: first.empty };
  let complaints: readonly string[] = [];
  let checkedAtMs = performance.now();

  const keepRules = (problems: readonly string[]): void => {
    if (problems.join('\n') === complaints.join('\n')) return;
    complaints = problems;
    for (const problem of problems) log.error(`${problem} The policy rules stay as they were.`);
  };

  function refresh(): void {
    let found: PolicyFiles;
    try {
      found = findPolicyFiles(settings);
    } catch (error) {
      keepRules([`The policy files cannot be read: ${messageOf(error)}.`]);
      return;
    }
    if (found.fingerprint === seen.fingerprint && !seen.unsettled) return;
    const isChanged = found.fingerprint !== seen.fingerprint || complaints.length > 0;
    const gone = goneOf(inForce, found, settings);
    if (gone.length > 0) {
      keepRules(gone);
      return;
    }
    const read = readRules(found.files, settings);
    // A file that could not be read for a moment, since too many files were open, is read again without a change.
    if (!('problems' in read && read.isUnread)) seen = found;
    if ('problems' in read) {
      keepRules(read.problems);
      return;
    }
    // A program that writes a file empties it first.
    const emptied = read.empty.filter((file) => inForce.files.includes(file) && !inForce.empty.includes(file));
    if (emptied.length > 0) {
      keepRules(emptied.map((file) => `The policy file ${file} is empty. Write {} into it if it is to have no rules.`));
      return;
    }
    enforce(found, read);
    if (!isChanged) return;
    for (const warning of read.warnings) log.warn(warning);
    logRead(found);
  }

  const enforce = (found: PolicyFiles, read: { readonly rules: Rules; readonly empty: readonly string[] }): void => {
    rules = read.rules;
    inForce = { files: found.files, folders: found.folders, empty: read.empty };
    complaints = [];
  };
  const logRead = ({ files }: PolicyFiles): void =>
    log.info(`The policy rules were read again: ${files.join(', ') || 'the defaults alone'}.`);

  const present = (): Rules => {
    const nowMs = performance.now();
    if (nowMs - checkedAtMs >= everyMs) {
      checkedAtMs = nowMs;
      refresh();
    }
    return rules;
  };
  return {
    allows: (rule, identity, target) => {
      const current = present();
      return decideForAny(current, rule, identity) ?? decide(current, rule, identity, target).allowed;
    },
    allowsAny: (rule, identity) => decideForAny(present(), rule, identity),
    isWritten: (rule) => present().byName.get(rule)?.file !== undefined,
    renew: (renewed) => {
      checkedAtMs = performance.now();
      if (isDeepStrictEqual(renewed, settings)) {
        refresh();
        return complaints;
      }
      try {
        const found = findOrThrow(renewed);
        enforce(found, readFirst(found, renewed, log));
        [settings, seen] = [renewed, found];
      } catch (error) {
        if (error instanceof ConfigError) return error.problems;
        throw error;
      }
      logRead(seen);
      return [];
    },
  };
}

/** The policy file and the folders that are no longer there, one sentence for each. */
function goneOf(
  before: Pick<PolicyFiles, 'files' | 'folders'>,
  found: PolicyFiles,
  { policyFile }: PolicySettings,
): readonly string[] {
  const isGone = before.files.includes(policyFile) && !found.files.includes(policyFile);
  const folders = before.folders.filter((folder) => !found.folders.includes(folder));
  return [
    ...(isGone ? [`The policy file ${policyFile} is gone.`] : []),
    ...folders.map((folder) => `The policy folder ${folder} is gone.`),
  ];
}

/** The rules that hold now. @throws ConfigError */
export function loadRules(settings: PolicySettings, log: PolicyLog): Rules {
  return readFirst(findOrThrow(settings), settings, log).rules;
}

/** Why the policy files cannot be used, one sentence for each reason. */
export function policyProblems(settings: PolicySettings): readonly string[] {
  try {
    loadRules(settings, { info: () => {}, warn: () => {}, error: () => {} });
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

function findOrThrow(settings: PolicySettings): PolicyFiles {
  try {
    return findPolicyFiles(settings);
  } catch (error) {
    throw new ConfigError([`The policy files cannot be read: ${messageOf(error)}.`]);
  }
}

function readFirst(
  { files }: PolicyFiles,
  settings: PolicySettings,
  log: PolicyLog,
): { readonly rules: Rules; readonly empty: readonly string[] } {
  const read = readRules(files, settings);
  if ('problems' in read) throw new ConfigError(read.problems);
  for (const warning of read.warnings) log.warn(warning);
  return read;
}
