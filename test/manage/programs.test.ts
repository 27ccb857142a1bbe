import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { harmful, hasHarmful } from '../support/harmful_characters.ts';
import { type CommandName, runAlone, startCommand } from './commands.ts';

const programs = ['placement', 'placement-api', 'placement-manage', 'placement-status'] as const;

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

test('errors have no control characters of what they name', async () => {
  // NUL cannot be in an argument.
  const name = `x${harmful.filter((character) => character !== '\0').join('')}`;
  const lines: readonly (readonly [CommandName, ...string[]])[] = [
    ['placement-api', '--config-file', `/${name}`],
    ['placement-api', `--${name}`],
    ['placement-api', '--port', name],
    ['placement-manage', 'policy', 'check', name, '--roles', 'reader'],
    ['placement-manage', 'import', '--from', name],
    ['placement-manage', name],
    ['placement-manage', '--config-file', `/${name}`, 'db', 'version'],
    ['placement-status', 'upgrade', name],
    ['placement', '--os-endpoint', 'http://127.0.0.1:1', 'provider', name],
  ];
  for (const [program, ...args] of lines) {
    const { code, stderr } = await runAlone(program, args, '/');
    assert.notEqual(code, 0, program);
    assert.match(stderr, /\S/, args[0]);
    assert.ok(!hasHarmful(stderr), JSON.stringify([program, args, stderr]));
  }
});

test('help ends without an error if the reader has closed the pipe', async () => {
  for (const program of programs) {
    const { child, ended } = startCommand(program, ['--help'], '/');
    child.stdout.destroy();
    assert.deepEqual(await ended, { code: 0, stdout: '', stderr: '' }, program);
  }
});
