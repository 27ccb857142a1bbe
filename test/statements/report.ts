import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Totals } from '../gabbi/report.ts';
import { type Engine, engines } from '../support/engines.ts';
import { declaredRows } from './declared_rows.ts';
import { declaredFile, type Ran, ranFile, type WrittenDeclared } from './recorded.ts';

/** Files with statements that no test in the process of a test runs on an engine, and why. */
const notRun: Readonly<Record<Engine, ReadonlyMap<string, string>>> = {
  postgresql: new Map([
    ['db/schema/privileges.ts', 'placement-manage runs it in a process of its own, as a role that lacks rights'],
  ]),
  embedded: new Map([]),
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
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  const ran = lines.map((line) => JSON.parse(line) as Ran); // as recorded.ts writes them
  const places = new Set(ran.map(({ place, engine }) => `${place} on ${engine}`));
  const wrong = new Set(
    ran.flatMap(({ place, complaints }) => complaints.map((complaint) => `${place}: ${complaint}`)),
  );
  const missing = engines.flatMap((engine) =>
    declaredRows()
      .filter(({ place }) => !notRun[engine].has(place.replace(/:\d+$/, '')))
      .map(({ place }) => `${place} on ${engine}`)
      .filter((place) => isWhole && !places.has(place)),
  );
  for (const text of wrong) console.log(`  FAILED ${text}`);
  for (const place of missing) console.log(`  FAILED ${place}: no test runs this statement`);
  const failed = wrong.size + missing.length;
  if (places.size > 0)
    console.log(`row types of ${new Set(ran.map(({ place }) => place)).size} statements: ${failed} failed`);
  return { passed: 0, failed, skipped: 0 };
}
