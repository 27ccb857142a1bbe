import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import type { FixtureTarget } from './fixtures/make.ts';
import { type Setting, settingOf } from './fixtures.ts';
import { parseGabbit } from './parse.ts';
import { type RunOptions, runGabbit, type TestResult } from './run.ts';

/** A running service on a fresh database, for the tests of one file. */
export type OpenedServer = FixtureTarget & { close(): Promise<void> };

/** Starts the service with the configuration of the fixtures of a file. */
export type OpenServer = (setting: Pick<Setting, 'config' | 'policy'>) => Promise<OpenedServer>;

export type FileResult = { readonly file: string; readonly seconds: number; readonly tests: readonly TestResult[] };

export type FolderOptions = {
  readonly folder: string;
  /** Globs of file names, with or without `.yaml`; a file must match one of `only` if there are any. */
  readonly only?: readonly string[];
  readonly exclude?: readonly string[];
  /** How many files run at the same time. */
  readonly jobs?: number;
  readonly open: OpenServer;
  readonly observe?: RunOptions['observe'] | undefined;
  /** Called as soon as a file is finished. */
  readonly report?: (result: FileResult) => void;
};

/**
 * Runs all gabbi files of a folder, each on a separate service and database. The results are in the order of the files.
 */
export async function runFolder(options: FolderOptions): Promise<readonly FileResult[]> {
  const { folder, only = [], exclude = [], jobs = 1 } = options;
  const files = (await readdir(folder))
    .filter((file) => file.endsWith('.yaml'))
    .filter((file) => only.length === 0 || matchesAny(file, only))
    .filter((file) => !matchesAny(file, exclude))
    .toSorted();
  const results: FileResult[] = [];
  const queue = files.values();
  const worker = async () => {
    // The workers share the iterator, so that each file runs once.
    for (const file of queue) {
      const started = performance.now();
      const tests = await runFile(path.join(folder, file), options);
      const result = { file, seconds: (performance.now() - started) / 1000, tests };
      results.push(result);
      options.report?.(result);
    }
  };
  await Promise.all(Array.from({ length: jobs }, worker));
  return results;
}

/** Runs one gabbi file. If its service does not start or a fixture fails, every test of the file fails. */
export async function runFile(
  file: string,
  { open, observe }: Pick<FolderOptions, 'open' | 'observe'>,
): Promise<readonly TestResult[]> {
  let names: readonly string[] = ['the file'];
  try {
    const gabbit = parseGabbit(await readFile(file, 'utf8'));
    names = gabbit.tests.map((test) => test.name);
    const setting = settingOf(gabbit.fixtures);
    const server = await open(setting);
    try {
      await setting.make(server);
      const { environment } = setting;
      const folder = path.dirname(file);
      return await runGabbit(gabbit, { baseUrl: server.url, environment, folder, observe, log: console.log });
    } finally {
      await server.close();
    }
  } catch (error) {
    const reason = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return names.map((name, index) => ({
      name,
      outcome: 'failed',
      message: index === 0 ? `It could not run.\n${reason}` : 'It could not run, like the first one.',
    }));
  }
}

const matchesAny = (file: string, globs: readonly string[]): boolean =>
  globs.some((glob) => path.matchesGlob(file, glob) || path.matchesGlob(file, `${glob}.yaml`));
