/** The blocks of docs/waiting.md do what it says, and then its example in TypeScript; and HAProxy takes the configuration that it names. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { compileExamples, project, readExamples, runExample, writeExamples } from '../client/documentation.ts';
import { startServer } from '../client/servers.ts';
import { hasHaproxy } from '../support/haproxy.ts';
import { runBlocks, withoutPython } from './blocks.ts';

test('docs/waiting.md prints what it says', { skip: withoutPython }, async () => {
  const examples = await readExamples('waiting.md');
  assert.deepEqual(
    examples.map(({ name }) => name),
    ['wait'],
  );
  const server = await startServer();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-waiting-'));
  try {
    assert.ok((await runBlocks('docs/waiting.md', server.url)) >= 9);
    await writeExamples(folder, examples);
    await compileExamples(folder);
    for (const { name, output } of examples) {
      assert.equal(await runExample(folder, name, { OS_ENDPOINT: server.url }), output);
    }
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
});

test('deploy/haproxy.cfg is a configuration for HAProxy', (t) => {
  if (!hasHaproxy()) {
    t.skip('haproxy is not installed');
    return;
  }
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', path.join(project, 'deploy', 'haproxy.cfg')], {
    encoding: 'utf8',
  });
  assert.equal(status, 0, stderr);
  assert.doesNotMatch(stderr, /WARNING|ALERT/);
});
