/** The worked example of CONTRIBUTING.md is put into a copy of the project, compiled and run. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { placementService } from '../../src/rest/microversions.ts';

const run = promisify(execFile);
const project = path.join(import.meta.dirname, '..', '..');

/** A block of code with its file: the whole file, or lines to insert into it. */
type Piece = { readonly kind: 'ts' | 'diff'; readonly file: string; readonly text: string };

async function readPieces(): Promise<readonly Piece[]> {
  const text = await readFile(path.join(project, 'CONTRIBUTING.md'), 'utf8');
  return [...text.matchAll(/^```(ts|diff) (\S+)\n([\s\S]*?)^```$/gm)].map(([, kind, file = '', text = '']) => ({
    kind: kind === 'ts' ? 'ts' : 'diff',
    file,
    text,
  }));
}

/** Inserts the lines with a plus next to the lines without one. The file must have these exactly once. */
function patch(text: string, diff: string): string {
  const lines = diff.trimEnd().split('\n');
  const without = lines.filter((line) => !line.startsWith('+')).map((line) => line.slice(1));
  const old = `${without.join('\n')}\n`;
  assert.equal(text.split(old).length, 2, `once in the file: ${old}`);
  return text.replace(old, `${lines.map((line) => line.slice(1)).join('\n')}\n`);
}

suite('the worked example of CONTRIBUTING.md', () => {
  let copy: string;

  before(async () => {
    copy = await mkdtemp(path.join(os.tmpdir(), 'placement-contributing-'));
    for (const part of ['src', 'db', 'test', 'gabbits', 'package.json', 'tsconfig.json', 'biome.json']) {
      await cp(path.join(project, part), path.join(copy, part), { recursive: true });
    }
    await symlink(path.join(project, 'node_modules'), path.join(copy, 'node_modules'));
    for (const { kind, file, text } of await readPieces()) {
      const target = path.join(copy, file);
      await mkdir(path.dirname(target), { recursive: true });
      await writeFile(target, kind === 'ts' ? text : patch(await readFile(target, 'utf8'), text));
    }
  });

  after(() => rm(copy, { recursive: true, force: true }));

  test('adds the next microversion', async () => {
    const added = (await readPieces()).find(({ file }) => file === 'src/rest/microversions.ts')?.text ?? '';
    assert.equal(Number(/\[(\d+),/.exec(added)?.[1]), placementService.maxMinor + 1);
  });

  test('compiles, and is formatted like the project', async () => {
    const files = (await readPieces()).map(({ file }) => file);
    const settings = { extends: './tsconfig.json', include: files };
    await writeFile(path.join(copy, 'tsconfig.example.json'), JSON.stringify(settings));
    const check = (program: string, ...args: readonly string[]) =>
      run(path.join(project, 'node_modules', '.bin', program), args, { cwd: copy }).catch(({ stdout, stderr }) =>
        assert.fail(`${stdout}${stderr}`),
      );
    await check('tsc', '-p', 'tsconfig.example.json');
    await check('biome', 'check', ...new Set(files));
  });

  test('passes its own test', async () => {
    // A separate run, not a part of this one.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const { stdout } = await run(process.execPath, ['test/run.ts', 'test/projects'], { cwd: copy, env }).catch(
      (error) => assert.fail(`${error.message}${error.stdout}`),
    );
    assert.match(stdout, /^2 passed, 0 failed$/m);
  });
});
