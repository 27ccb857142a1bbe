import { ConfigError } from '../../config/config.ts';
import type { Identity } from '../../rest/identity.ts';
import { messageOf } from '../../text/print.ts';
import type { Values } from './evaluate.ts';
import { findPolicyFiles, type PolicyFiles, type PolicySettings, readRules } from './read_files.ts';
import { decide, type Rules } from './rules.ts';

/** Decides whether requests are allowed. */
export type Policy = {
  /** Whether the rule of this name allows the identity to do something to the target. An unknown rule denies. */
  allows(rule: string, identity: Identity, target: Values): boolean;
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
 * or a folder has disappeared, or a file with rules is empty, the last good rules hold, and the log says why.
 *
 * @throws ConfigError if they are broken at the start.
 */
export function openPolicy(settings: PolicySettings, log: PolicyLog, everyMs = checkEveryMs): Policy {
  let seen: PolicyFiles = findOrThrow(settings);
  const first = readFirst(seen, settings, log);
  let { rules } = first;
  /** What the rules were read from. */
  let inForce = { files: seen.files, folders: seen.folders, empty: first.empty };
  let complaint = '';
  let checkedAtMs = performance.now();

  const keep = (problems: readonly string[]): void => {
    if (problems.join('\n') === complaint) return;
    complaint = problems.join('\n');
    for (const problem of problems) log.error(`${problem} The policy rules stay as they were.`);
  };

  function refresh(): void {
    let found: PolicyFiles;
    try {
      found = findPolicyFiles(settings);
    } catch (error) {
      keep([`The policy files cannot be read: ${messageOf(error)}.`]);
      return;
    }
    if (found.fingerprint === seen.fingerprint && !seen.unsettled) return;
    const isNews = found.fingerprint !== seen.fingerprint || complaint !== '';
    const gone = goneOf(inForce, found, settings);
    if (gone.length > 0) {
      keep(gone);
      return;
    }
    const read = readRules(found.files, settings);
    // A file that could not be read for a moment, since too many files were open, is read again without a change.
    if (!('problems' in read && read.isUnread)) seen = found;
    if ('problems' in read) {
      keep(read.problems);
      return;
    }
    // A program that writes a file empties it first.
    const emptied = read.empty.filter((file) => inForce.files.includes(file) && !inForce.empty.includes(file));
    if (emptied.length > 0) {
      keep(emptied.map((file) => `The policy file ${file} is empty. Write {} into it if it is to have no rules.`));
      return;
    }
    rules = read.rules;
    inForce = { files: found.files, folders: found.folders, empty: read.empty };
    complaint = '';
    if (!isNews) return;
    for (const warning of read.warnings) log.warn(warning);
    log.info(`The policy rules were read again: ${found.files.join(', ') || 'the defaults alone'}.`);
  }

  return {
    allows: (rule, identity, target) => {
      const nowMs = performance.now();
      if (nowMs - checkedAtMs >= everyMs) {
        checkedAtMs = nowMs;
        refresh();
      }
      return decide(rules, rule, identity, target).allowed;
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
