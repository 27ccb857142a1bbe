/** A log that is not read: the service continues, and ends when it is stopped. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { constants } from 'node:fs';
import { mkdtemp, open, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { quickStart } from '../support/quick_start.ts';

test('a service ends in order although its log on standard error is not read', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-unread-'));
  const pipe = path.join(folder, 'log');
  execFileSync('mkfifo', [pipe]);
  const unread = await open(pipe, constants.O_RDWR);
  const program = path.join(import.meta.dirname, '..', '..', 'src', 'bin', 'placement-api.ts');
  const child = spawn(process.execPath, [program, '--port', '0'], {
    cwd: folder,
    stdio: ['ignore', 'pipe', unread.fd],
    env: {
      ...quickStart,
      PATH: process.env.PATH,
      HOME: folder,
      OS_API__AUTH_STRATEGY: 'noauth2',
      OS_PLACEMENT_DATABASE__EMBEDDED_PATH: 'memory://',
    },
  });
  try {
    let said = '';
    child.stdout?.on('data', (text) => {
      said += text;
    });
    const ended = once(child, 'exit');
    while (!said.includes('listens on')) await Promise.race([sleep(20), ended.then(() => assert.fail(said))]);
    const [, url = ''] = /listens on (\S+)/.exec(said) ?? [];
    const ask = async (target: string): Promise<string> =>
      (await fetch(`${url}${target}`, { headers: { 'x-auth-token': 'admin' } })).text();
    const waitingBytes = async () => Number(/^placement_log_waiting_bytes (\d+)/m.exec(await ask('/metrics'))?.[1]);
    while ((await waitingBytes()) < 20_000) await ask(`/resource_providers?name=${'a'.repeat(150)}`);
    child.kill('SIGTERM');
    const outcome = await Promise.race([ended, sleep(30_000, ['still runs'], { ref: false })]);
    assert.deepEqual(outcome, [0, null]);
  } finally {
    child.kill('SIGKILL');
    await unread.close();
    await rm(folder, { recursive: true });
  }
});
