import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, test } from 'node:test';
import { killLeftovers, runToEnd } from './commands.ts';

const programs = ['placement', 'placement-api', 'placement-manage', 'placement-status'] as const;

after(killLeftovers);

test('each program prints the version of the package', async () => {
  const { version } = JSON.parse(await readFile(path.join(import.meta.dirname, '..', '..', 'package.json'), 'utf8'));
  for (const program of programs) {
    assert.deepEqual(
      await runToEnd(program, ['--version'], '/'),
      { code: 0, stdout: `${version}\n`, stderr: '' },
      program,
    );
  }
});
