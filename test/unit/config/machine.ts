import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { ConfigError } from '../../../src/config/config.ts';
import { type LoadedConfig, load } from '../../../src/config/load.ts';
import type { ConfigLocations } from '../../../src/config/search.ts';
import type { Override } from '../../../src/config/sources.ts';

/** A separate machine in a folder: `home`, `etc` and `cwd` are in `root`, and the environment is empty. */
export type Machine = {
  readonly root: string;
  readonly load: (more?: More) => LoadedConfig;
  readonly problems: (more?: More) => readonly string[];
};
type More = Partial<ConfigLocations> & { readonly overrides?: readonly Override[] };

/** Calls back with a machine that has these files. Paths are relative to its root. A path that ends in / is a folder. */
export function withMachine<T>(files: Readonly<Record<string, string>>, use: (machine: Machine) => T): T {
  const root = mkdtempSync(path.join(tmpdir(), 'placement-config-'));
  try {
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(root, name);
      mkdirSync(name.endsWith('/') ? file : path.dirname(file), { recursive: true });
      if (!name.endsWith('/')) writeFileSync(file, text);
    }
    const locations = { env: {}, home: path.join(root, 'home'), cwd: root, etc: path.join(root, 'etc') };
    const loadHere = (more: More = {}): LoadedConfig => load({ ...locations, ...more });
    return use({ root, load: loadHere, problems: (more) => problemsOf(() => loadHere(more), root) });
  } finally {
    rmSync(root, { recursive: true });
  }
}

/** A machine with only `/etc/placement/placement.conf`. */
export const withConf = <T>(text: string, use: (machine: Machine) => T): T =>
  withMachine({ 'etc/placement/placement.conf': text }, use);

function problemsOf(run: () => unknown, root: string): readonly string[] {
  try {
    run();
  } catch (error) {
    if (error instanceof ConfigError) return error.problems.map((problem) => problem.replaceAll(`${root}/`, '/'));
    throw error;
  }
  return [];
}
