import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Scene } from './arena.ts';

/** A text of a file, and its replacement. */
type Change = { readonly from: string; readonly to: string };

/** Changes of one file. */
type FileChange = Change & { readonly file: string; readonly more?: readonly Change[] };

/** One deliberate mistake in the service. */
export type Mistake = Partial<FileChange> & {
  readonly name: string;
  /** Changes of other files. */
  readonly also?: readonly FileChange[];
  /** Statements that plant it into the database. */
  readonly statements?: readonly string[];
  /** On how many processes of one database it shows. */
  readonly processes?: number;
  /** In which histories it shows; without it, those of hosts. */
  readonly scene?: Scene;
  /** Whether it shows only where one history at a time is made. */
  readonly isAlone?: true;
  /** Whether it may take minutes to be found, so that a run does not choose it by chance. Name the test that finds it in each run. */
  readonly isRare?: true;
  /** What it shows in besides usual histories: only if a backend of PostgreSQL crashes, or in schedules of claims that wait. */
  readonly needs?: 'a crash' | 'schedules';
};

/** The texts of the files that have the mistake. @throws Error if a file does not have each replaced text exactly once */
export function withMistake({ file, from, to, more = [], also = [] }: Mistake): ReadonlyMap<string, string> {
  const first = file === undefined || from === undefined || to === undefined ? [] : [{ file, from, to, more }];
  const texts = new Map<string, string>();
  for (const change of [...first, ...also]) {
    const absolute = path.join(import.meta.dirname, '..', '..', change.file);
    for (const part of [change, ...(change.more ?? [])]) {
      const source = texts.get(absolute) ?? readFileSync(absolute, 'utf8');
      if (source.split(part.from).length !== 2) throw new Error(`${change.file} does not have once: ${part.from}`);
      texts.set(
        absolute,
        source.replace(part.from, () => part.to),
      );
    }
  }
  return texts;
}
