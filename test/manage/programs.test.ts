import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, test } from 'node:test';
import { killLeftovers, runAlone, startCommand } from './commands.ts';

const programs = ['placement', 'placement-api', 'placement-manage', 'placement-status'] as const;

after(killLeftovers);

test('each program prints the version of the package', async () => {
  const { version } = JSON.parse(await readFile(path.join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'));
  for (const program of programs) {
    assert.deepEqual(
      await runAlone(program, ['--version'], '/'),
      { code: 0, stdout: `${version}\n`, stderr: '' },
      program,
    );
  }
});

test('help ends without an error if the reader has closed the pipe', async () => {
  for (const program of programs) {
    const { child, ended } = startCommand(program, ['--help'], '/');
    child.stdout.destroy();
    assert.deepEqual(await ended, { code: 0, stdout: '', stderr: '' }, program);
  }
});
