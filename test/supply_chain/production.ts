/** The packages that an installation of the service gets, by package-lock.json. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** A package in package-lock.json, with those fields of its package.json that npm copies there. */
export type LockedPackage = {
  readonly version?: string;
  readonly license?: string;
  readonly hasInstallScript?: boolean;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
};

export type LockFile = { readonly packages: Readonly<Record<string, LockedPackage>> };

export const project = path.join(import.meta.dirname, '..', '..');

/** A JSON file at the top of the project. */
export const readProjectJson = (name: string): Record<string, unknown> =>
  JSON.parse(readFileSync(path.join(project, name), 'utf8'));

// The file has this form in lockfileVersion 3.
export const lockFile = readProjectJson('package-lock.json') as unknown as LockFile;

/** Packages for development that are part of the console's script all the same, and so of the package. */
export const bundled = ['preact'] as const;

/**
 * The packages that an installation of the service contains, by their locations in the lock file: the dependencies, what
 * they depend on, and what the console bundles. Optional peers are left out, since npm does not install the optional
 * peers of a dependency.
 */
export function productionPackages(): ReadonlyMap<string, LockedPackage> {
  const { packages } = lockFile;
  const found = new Map<string, LockedPackage>();
  const follow = (from: string, more: readonly string[] = []): void => {
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta = {} } = packages[from] ?? {};
    const peers = Object.keys(peerDependencies ?? {}).filter((name) => peerDependenciesMeta[name]?.optional !== true);
    for (const name of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers, ...more]) {
      const location = locationOf(name, from, packages);
      const entry = packages[location];
      if (entry === undefined)
        throw new Error(`package-lock.json has no ${name}, which ${from || 'the project'} needs.`);
      if (found.has(location)) continue;
      found.set(location, entry);
      follow(location);
    }
  };
  follow('', bundled);
  return found;
}

/** Where Node.js finds a package that another one needs: in its own folder, or in one above. */
function locationOf(name: string, from: string, packages: LockFile['packages']): string {
  for (let folder = from; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf('/node_modules/')))) {
    const location = `${folder === '' ? '' : `${folder}/`}node_modules/${name}`;
    if (packages[location] !== undefined || folder === '') return location;
  }
}

/** The name of a package by its location in the lock file. */
export const nameAt = (location: string): string =>
  location.slice(location.lastIndexOf('node_modules/') + 'node_modules/'.length);
