/** The installed package has every file that its README leads to. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const project = path.join(import.meta.dirname, '..', '..');

test('the packed package holds every file that its README links to', async () => {
  const { stdout } = await promisify(execFile)('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: project,
  });
  const [packed]: readonly { readonly files: readonly { readonly path: string }[] }[] = JSON.parse(stdout);
  const files = new Set(packed?.files.map((file) => file.path));
  const readme = await readFile(path.join(project, 'README.md'), 'utf8');
  const links = [...readme.matchAll(/\]\(([^)#\s]+)/g)].map(([, target = '']) => target);
  const linked = links.filter((target) => !/^https?:/.test(target));
  assert.ok(linked.length > 10, `${linked}`);
  assert.deepEqual(
    linked.filter((file) => !files.has(file)),
    [],
  );
});
