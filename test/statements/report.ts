import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { Totals } from '../gabbi/report.ts';
import { declaredRows } from './declared_rows.ts';
import { declaredFile, type Ran, ranFile, type WrittenDeclared } from './recorded.ts';

/** Files with statements that no test in the process of a test runs on PostgreSQL, and why. */
const notRun: ReadonlyMap<string, string> = new Map([
  ['db/schema/privileges.ts', 'placement-manage runs it in a process of its own, as a role that lacks rights'],
]);

/** Prepares a folder in which processes of tests note the statements that they run. */
export function beginNoting(folder: string): void {
  const written = declaredRows().map((declared): WrittenDeclared => ({ ...declared, columns: [...declared.columns] }));
  writeFileSync(path.join(folder, declaredFile), JSON.stringify(written));
}

/**
 * Says which statements have other columns than their row types, and after all tests which of them no test has run.
 *
 * @param isWhole whether all tests were run
 */
export function reportStatements(folder: string, isWhole: boolean): Totals {
  const file = path.join(folder, ranFile);
  const lines = existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [];
  const ran = lines.map((line) => JSON.parse(line) as Ran); // as recorded.ts writes them
  const places = new Set(ran.map(({ place }) => place));
  const wrong = new Set(
    ran.flatMap(({ place, complaints }) => complaints.map((complaint) => `${place}: ${complaint}`)),
  );
  const missing = isWhole ? declaredRows().filter(({ place }) => !places.has(place) && !isExcused(place)) : [];
  for (const text of wrong) console.log(`  FAILED ${text}`);
  for (const { place } of missing) console.log(`  FAILED ${place}: no test runs this statement`);
  const failed = wrong.size + missing.length;
  if (places.size > 0) console.log(`row types of ${places.size} statements: ${failed} failed`);
  return { passed: 0, failed, skipped: 0 };
}

const isExcused = (place: string): boolean => notRun.has(place.replace(/:\d+$/, ''));
