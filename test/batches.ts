import { randomUUID } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

/*
 * Which test files share a process, and in which of two lanes it runs. Tests that wait (for time-outs, locks, a server that starts again)
 * run beside those that compute. This is the only place that says which is which.
 */

/** Test files that run in one process, one after the other. Paths begin with `test/`. */
export type Batch = { readonly name: string; readonly files: readonly string[] };

/** The batches of each lane, in the order in which they begin. */
export type Lanes = { readonly waiting: readonly Batch[]; readonly computing: readonly Batch[] };

/** Files, or folders with all their files, that wait more than they compute. */
const waiting = [
  'changes/',
  'client/package',
  'database/statement_timeout',
  'embedded/power_failure',
  'http/proxies',
  'import/',
  'keystone/',
  'races/',
  'soak/',
  'support/debian_packages',
  'upgrades/',
  'upstream/',
  'workers/',
];

/**
 * Those that take longest, which begin first in their lane: otherwise one of them may run alone at the end. Each has a process of its own.
 */
const longest = [
  'import/import',
  'client/package',
  'soak/soak',
  'histories/mistakes',
  'bench/quick',
  'races/crash',
  'races/claims',
  'races/one_snapshot',
  'database/statement_timeout',
  'documents/contributing',
  'histories/service',
  'races/schema_changes',
  'manage/placement_api',
  'console/console',
  'waiting/expired_tokens',
  'waiting/processes',
  'waiting/schedules',
  'console/views',
  'console/fleet',
  'placing/at_once',
  'etags/race',
  'manage/many_consumers',
  'supply_chain/image',
  'console/holders',
  'http/unix_socket',
  'manage/renewal',
  'documents/kolla',
  'kubernetes/as_in_a_pod',
];

/** What must not share a process: it changes the process, or asserts how much memory or time the process uses, or installs programs. */
const alone = ['run', 'candidates/explosion', 'give_back_memory', 'fleet/comparison', 'stale/', 'hostile/', 'bodies/'];

/**
 * So many files share a process, which imports what they use once: a second of CPU time. It is a compromise: the fewer, the better are the
 * cores used at the end of a run.
 */
const mostInOne = 8;

const matches = (file: string, names: readonly string[]): boolean =>
  names.some((name) => (name.endsWith('/') ? file.startsWith(`test/${name}`) : file === `test/${name}.test.ts`));

/** Which files share a process, and when it begins. */
export function lanesOf(files: readonly string[]): Lanes {
  const rank = ({ files: [first = ''] }: Batch): number => {
    const index = longest.findIndex((name) => first === `test/${name}.test.ts`);
    return index === -1 ? longest.length : index;
  };
  const inOrder = (batches: readonly Batch[]) => batches.toSorted((one, other) => rank(one) - rank(other));
  const single = (file: string): Batch => ({ name: file, files: [file] });
  const isSingle = (file: string) => matches(file, alone) || matches(file, longest);
  const lane = (members: readonly string[]): readonly Batch[] => {
    const byFolder = Map.groupBy(
      members.filter((file) => !isSingle(file)),
      (file) => path.dirname(file),
    );
    return inOrder([
      ...members.filter(isSingle).map(single),
      ...[...byFolder].flatMap(([folder, shared]) => inParts(folder, shared)),
    ]);
  };
  return {
    waiting: lane(files.filter((file) => matches(file, waiting))),
    computing: lane(files.filter((file) => !matches(file, waiting))),
  };
}

/** Batches of about the same size. */
function inParts(folder: string, files: readonly string[]): readonly Batch[] {
  const parts = Math.ceil(files.length / mostInOne);
  return Array.from({ length: parts }, (_, part) => ({
    name: parts === 1 ? folder : `${folder}, part ${part + 1}`,
    files: files.filter((_, index) => index % parts === part),
  }));
}

/**
 * Writes a module that imports test files, each into a suite whose name is its path, so that the hooks of a file are for its own tests. After
 * all of them it writes beside itself, with `.cpu` added to its name, how many milliseconds the process and those that it started computed.
 *
 * @param files paths that begin with `test/`
 * @param folder where the module is written
 * @returns the path of the module
 */
export async function writeEntry(files: readonly string[], project: string, folder: string): Promise<string> {
  /** The URL of a file of the project, as a text of JavaScript. */
  const urlOf = (file: string): string => JSON.stringify(pathToFileURL(path.join(project, file)).href);
  const suites = files.map((file) => `suite(${JSON.stringify(file)}, () => imported(import(${urlOf(file)})));\n`);
  const entry = path.join(folder, `${randomUUID()}.mjs`);
  const head = `import { writeFileSync } from 'node:fs';
import { after, suite } from 'node:test';
import { cpuMs } from ${urlOf('test/bench/processes.ts')};
import { keepDatabases } from ${urlOf('test/support/kept_databases.ts')};
import { endLeftovers } from ${urlOf('test/support/leftovers.ts')};
import { unfollowPromises } from ${urlOf('test/support/unfollowed_promises.ts')};
let unimported = ${files.length};
const imported = (file) => file.finally(() => {
  unimported -= 1;
  if (unimported === 0) unfollowPromises();
});
after(endLeftovers);
after(keepDatabases());
after(() => writeFileSync(${JSON.stringify(`${entry}.cpu`)}, String(cpuMs([process.pid]))));
`;
  await writeFile(entry, `${head}${suites.join('')}`);
  return entry;
}
