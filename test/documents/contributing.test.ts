/** The worked example of CONTRIBUTING.md is put into a copy of the project, compiled and run. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { placementService } from '../../src/placement/microversions.ts';
import { newestOf, versionText } from '../../src/placement/versions.ts';

const run = promisify(execFile);
const project = path.join(import.meta.dirname, '..', '..');

/** A block of code with its file: the whole file, or lines to insert into it. */
type Piece = { readonly kind: 'ts' | 'diff'; readonly file: string; readonly text: string };

async function readPieces(): Promise<readonly Piece[]> {
  const text = withVersions(await readFile(path.join(project, 'CONTRIBUTING.md'), 'utf8'));
  return [...text.matchAll(/^```(ts|diff) (\S+)\n([\s\S]*?)^```$/gm)].map(([, kind, file = '', text = '']) => ({
    kind: kind === 'ts' ? 'ts' : 'diff',
    file,
    text,
  }));
}

/** The example is for the next version, whichever it is. */
function withVersions(text: string): string {
  const newest = newestOf(placementService);
  return text.replaceAll('2.NEXT', versionText(newest + 1)).replaceAll('2.NEWEST', versionText(newest));
}

/** Inserts the lines with a plus and removes those with a minus. The file must have the others, and these, exactly once. */
function patch(text: string, { file, text: diff }: Piece): string {
  const lines = diff.trimEnd().split('\n');
  const linesWithout = (sign: string) =>
    lines
      .filter((line) => !line.startsWith(sign))
      .map((line) => `${line.slice(1)}\n`)
      .join('');
  const [old, changed] = [linesWithout('+'), linesWithout('-')];
  assert.equal(text.split(old).length, 2, `once in ${file}: ${old}`);
  return text.replace(old, () => changed);
}

suite('the worked example of CONTRIBUTING.md', () => {
  let copy: string;

  before(async () => {
    copy = await mkdtemp(path.join(os.tmpdir(), 'placement-contributing-'));
    for (const part of [
      'src',
      'db',
      'test',
      'gabbits',
      'openapi.yaml',
      'openapi-compute.yaml',
      'package.json',
      'tsconfig.json',
      'biome.json',
    ]) {
      await cp(path.join(project, part), path.join(copy, part), { recursive: true });
    }
    await symlink(path.join(project, 'node_modules'), path.join(copy, 'node_modules'));
    for (const piece of await readPieces()) {
      const target = path.join(copy, piece.file);
      await mkdir(path.dirname(target), { recursive: true });
      await writeFile(target, piece.kind === 'ts' ? piece.text : patch(await readFile(target, 'utf8'), piece));
    }
  });

  after(() => rm(copy, { recursive: true, force: true }));

  test('compiles, and is formatted like the project', async () => {
    const files = (await readPieces()).map(({ file }) => file).filter((file) => file.endsWith('.ts'));
    const settings = { extends: './tsconfig.json', include: files };
    await writeFile(path.join(copy, 'tsconfig.example.json'), JSON.stringify(settings));
    const check = (program: string, ...args: readonly string[]) =>
      run(path.join(project, 'node_modules', '.bin', program), args, { cwd: copy }).catch(({ stdout, stderr }) =>
        assert.fail(`${stdout}${stderr}`),
      );
    await check('tsc', '-p', 'tsconfig.example.json');
    await check('biome', 'check', ...new Set(files));
  });

  test('passes its own test, and the tests of rules, of openapi.yaml and of the client', async () => {
    const tests = [
      'test/projects/projects',
      'test/policy/table',
      'test/openapi/document',
      'test/openapi/routes',
      'test/client/endpoints',
    ];
    // A separate run, not a part of this one.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { stdout } = await run(process.execPath, ['test/run.ts', ...tests], { cwd: copy, env }).catch((error) =>
      assert.fail(`${error.message}${error.stdout}`),
    );
    for (const file of tests) assert.match(stdout, new RegExp(`^${file}\\.test\\.ts: [1-9]\\d* passed, 0 failed`, 'm'));
  });
});
