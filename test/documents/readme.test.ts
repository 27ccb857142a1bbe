/** The commands of README.md do what it promises, also when they are run again. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { project } from '../client/documentation.ts';
import { startServer } from '../client/servers.ts';

/** The indented lines of a section. */
async function linesOf(title: string): Promise<readonly string[]> {
  const text = await readFile(path.join(project, 'README.md'), 'utf8');
  const section = text.split(/^## /m).find((each) => each.startsWith(`${title}\n`)) ?? '';
  const lines = section.split('\n').filter((line) => line.startsWith('    ') || line === '');
  return lines.map((line) => line.slice(4));
}

const isStatus = (line: string): boolean => /^\d{3}$/.test(line);

test('the session of README.md and its lost updates have the documented results, also in a second run', async () => {
  const server = await startServer();
  try {
    const session = (await linesOf('A session')).join('\n').replace('http://127.0.0.1:8778', server.url);
    assert.ok(session.includes(server.url));
    const update = await linesOf('A lost update, prevented');
    const script = update.filter((line) => !isStatus(line)).join('\n');
    const promised = update.filter(isStatus);
    assert.equal(promised.length, 4);
    const run = (...parts: readonly string[]) => promisify(execFile)('bash', ['-c', parts.join('\n')]);
    // The commands name the host by the time in seconds, so a second run must begin in another second.
    const again = session.replace('$(date +%s)', '$(($(date +%s) + 1))');
    const { stdout } = await run(
      session,
      'echo; echo FIRST',
      script,
      'echo SECOND',
      script,
      again,
      'echo; echo THIRD',
      script,
    );
    const [begun = '', first = '', second = '', third = ''] = stdout.split(/FIRST|SECOND|THIRD/);
    for (const text of [begun, second]) {
      assert.match(text, /"allocation_requests"/);
      assert.match(text, /}204$/m);
      assert.equal(
        text.match(/placement\.concurrent_update/g)?.length,
        1,
        'only the claim that is shown to be a conflict',
      );
    }
    for (const text of [first, second, third]) {
      assert.deepEqual(text.trim().split('\n').filter(isStatus).slice(0, 4), promised);
    }
  } finally {
    await server.close();
  }
});
