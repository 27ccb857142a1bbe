import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Totals } from '../gabbi/report.ts';
import { type Engine, engines } from '../support/engines.ts';
import { declaredRows } from './declared_rows.ts';
import { declaredFile, type Ran, ranFile, type WrittenDeclared } from './recorded.ts';

const own = 'a command of placement-manage or placement-status runs it in a process of its own';

/** Files with statements that no test in the process of a test runs on an engine, and why. */
const notRun: Readonly<Record<Engine, ReadonlyMap<string, string>>> = {
  postgresql: new Map([
    ['db/engine/embedded.ts', 'it vacuums the embedded database'],
    ['db/schema/privileges.ts', 'placement-manage runs it in a process of its own, as a role that lacks rights'],
  ]),
  embedded: new Map([
    ['db/engine/commit_watch.ts', 'it has no standbys'],
    ['db/fleet/read_unchanged.ts', 'nothing is compared where one process has the database'],
    ['db/fleet/log_position.ts', 'it has one connection, so that no two share a snapshot'],
    ['db/fleet/read_changes.ts', 'it is no standby'],
    ['db/statements/locked_rows.ts', 'it has one connection, which waits for no lock'],
    ['db/schema/unfinished_import.ts', own],
    ['src/manage/import/import_deployment.ts', own],
    ['src/manage/import/target.ts', own],
    ['src/manage/upgrade_checks.ts', own],
    ['db/schema/privileges.ts', 'it has one role, which has all rights'],
    ['db/statements/names/resource_classes.ts', own],
  ]),
};

/** Prepares a folder in which processes of tests note the statements that they run. */
export function beginNoting(folder: string): void {
  const written = declaredRows().map((declared): WrittenDeclared => ({ ...declared, columns: [...declared.columns] }));
  writeFileSync(path.join(folder, declaredFile), JSON.stringify(written));
}

/**
 * Says which statements have other columns than their row types, and after all tests which of them no test has run on which engine.
 *
 * @param isWhole whether all tests were run
 */
export function reportStatements(folder: string, isWhole: boolean): Totals {
  const file = path.join(folder, ranFile);
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  // As recorded.ts writes them.
  const ran = text.split('\n').flatMap((line) => (line === '' ? [] : [JSON.parse(line) as Ran]));
  const locations = new Set(ran.map(({ location, engine }) => `${location} on ${engine}`));
  const wrong = new Set(
    ran.flatMap(({ location, complaints }) => complaints.map((complaint) => `${location}: ${complaint}`)),
  );
  const missing = engines.flatMap((engine) =>
    declaredRows()
      .filter(({ location }) => !notRun[engine].has(location.replace(/:\d+$/, '')))
      .map(({ location }) => `${location} on ${engine}`)
      .filter((location) => isWhole && !locations.has(location)),
  );
  for (const text of wrong) console.log(`  FAILED ${text}`);
  for (const location of missing) console.log(`  FAILED ${location}: no test runs this statement`);
  const failed = wrong.size + missing.length;
  if (locations.size > 0)
    console.log(`row types of ${new Set(ran.map(({ location }) => location)).size} statements: ${failed} failed`);
  return { passed: 0, failed, skipped: 0 };
}
