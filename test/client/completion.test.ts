import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { connect } from '../../src/client/index.ts';
import { quickStart } from '../support/quick_start.ts';
import { placement, program } from './command.ts';
import { startServer } from './servers.ts';

const exec = promisify(execFile);
let folder: string;
/** How the completed command reaches a service. */
let env: Readonly<Record<string, string>> = {};

before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'placement-completion-'));
  const command = path.join(folder, 'placement');
  await writeFile(command, `#!/bin/sh\nexec '${process.execPath}' '${program}' "$@"\n`);
  await chmod(command, 0o755);
  // As a user's profile, which does it once for a shell.
  await writeFile(path.join(folder, 'script'), (await placement(['completion', 'bash'])).stdout);
});
after(() => rm(folder, { recursive: true }));

/** The completions that bash offers for the last of these words, as they are typed. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const line = ['placement', ...words].join(' ');
  // As bash splits a line: at : and = as well.
  const split = line.match(/(?:\\.|[^\s:=\\])+|[:=]+|(?<=\s)$/g) ?? [];
  const quoted = (word: string) => `'${word.replaceAll("'", "'\\''")}'`;
  const script = `source '${folder}/script'; COMP_WORDS=(${split.map(quoted).join(' ')}); COMP_CWORD=${split.length - 1}
    COMP_LINE=${quoted(line)}; COMP_POINT=${line.length}
    _placement_complete; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await exec('bash', ['-c', script], {
    env: { PATH: `${folder}:${process.env.PATH}`, ...quickStart, ...env },
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
  assert.deepEqual(await offered('inventory', 'list', '--format', ''), ['table', 'json', 'csv', 'value']);
  assert.deepEqual(await offered('inventory', 'list', '--format=t'), ['table'], 'what is behind the =');
});

test('there are scripts for zsh and fish, and for no other shell', async () => {
  for (const shell of ['zsh', 'fish'])
    assert.match((await placement(['completion', shell])).stdout, /placement __complete/);
  const { code, stderr } = await placement(['completion', 'tcsh']);
  assert.equal(code, 2);
  assert.match(stderr, /Allowed choices are bash, zsh, fish/);
});

test('names of providers, traits and classes come from the service', async () => {
  const server = await startServer();
  try {
    env = { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' };
    const { providers, traits, resourceClasses } = connect({ endpoint: server.url, auth: 'admin' });
    for (const name of ['host-1', 'host-2', 'a pool; rm *', 'h:ovs agent', "it's", 'evil\u001b[31m'])
      await providers.create({ name });
    await traits.ensure('CUSTOM_FAST');
    await resourceClasses.ensure('CUSTOM_TAPE');
    assert.deepEqual(await offered('provider', 'show', 'ho'), ['host-1', 'host-2']);
    assert.deepEqual(await offered('provider', 'show', 'a'), ['a\\ pool\\;\\ rm\\ \\*'], 'quoted for the shell');
    assert.deepEqual(await offered('provider', 'show', 'a\\ po'), ['a\\ pool\\;\\ rm\\ \\*'], 'typed with quotes');
    assert.deepEqual(await offered('provider', 'show', "it\\'"), ["it\\'s"]);
    for (const typed of ['h:', 'h:o', 'h:ovs\\ a']) {
      assert.deepEqual(await offered('provider', 'show', typed), ['ovs\\ agent'], 'what is behind the :');
    }
    assert.deepEqual(await offered('provider', 'show', 'ev'), [''], 'no control characters');
    assert.deepEqual(await offered('provider', 'list', '--in-tree', 'host-2'), ['host-2']);
    assert.deepEqual(await offered('provider', 'show', '--json', 'host-2'), ['host-2']);
    assert.deepEqual(await offered('trait', 'add', 'host-1', 'CUSTOM_F'), ['CUSTOM_FAST']);
    assert.deepEqual(await offered('trait', 'delete', 'CUSTOM_'), ['CUSTOM_FAST']);
    assert.deepEqual(await offered('class', 'delete', 'CUSTOM_'), ['CUSTOM_TAPE']);
    assert.deepEqual(await offered('candidate', 'list', 'VCPU=1', '--required', '!CUSTOM'), ['\\!CUSTOM_FAST']);
    assert.deepEqual(await offered('candidate', 'list', 'CUSTOM'), ['CUSTOM_TAPE=']);
    assert.deepEqual(await offered('inventory', 'delete', 'host-1', 'DISK'), ['DISK_GB']);
    env = { OS_ENDPOINT: 'http://127.0.0.1:1', OS_TOKEN: 'admin' };
    assert.deepEqual(
      await offered('provider', 'show', 'ho'),
      [''],
      'without a service there are no names, and no error',
    );
  } finally {
    env = {};
    await server.close();
  }
});
