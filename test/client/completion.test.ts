import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { compileCache } from '../compile_cache.ts';
import { placement, program } from './command.ts';

const exec = promisify(execFile);
let folder: string;

before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'placement-completion-'));
  const command = path.join(folder, 'placement');
  await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
  await chmod(command, 0o755);
});
after(() => rm(folder, { recursive: true }));

/** The completions that bash offers for the last of these words. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const quoted = ['placement', ...words].map((word) => `'${word}'`).join(' ');
  const script = `source <(placement completion bash); COMP_WORDS=(${quoted}); COMP_CWORD=${words.length}
    _placement_complete; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await exec('bash', ['-c', script], {
    env: { PATH: `${folder}:${process.env.PATH}`, ...compileCache },
    timeout: 60_000,
  });
  return stdout.trim().split('\n');
}

test('bash completes commands, their commands and options', async () => {
  assert.deepEqual(await offered('pro'), ['provider']);
  assert.deepEqual(await offered('provider', ''), [
    'create',
    'delete',
    'help',
    'list',
    'set',
    'show',
    'summary',
    'tree',
  ]);
  assert.deepEqual(await offered('provider', 'list', '--na'), ['--name']);
  assert.deepEqual(await offered('--json', 'candidate', 'list', '--gr'), ['--group', '--group-policy']);
  assert.deepEqual(await offered('inventory', 'list', '--os-tok'), ['--os-token']);
});

test('there are scripts for zsh and fish, and for no other shell', async () => {
  for (const shell of ['zsh', 'fish'])
    assert.match((await placement(['completion', shell])).stdout, /placement __complete/);
  const { code, stderr } = await placement(['completion', 'tcsh']);
  assert.equal(code, 2);
  assert.match(stderr, /Allowed choices are bash, zsh, fish/);
});
