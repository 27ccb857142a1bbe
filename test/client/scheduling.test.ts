import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { placement } from './command.ts';
import { compileExamples, readExamples, readSession, runExample, writeExamples } from './documentation.ts';
import { startServer } from './servers.ts';

test('the commands and examples of docs/scheduling.md print the documented output', async () => {
  const commands = await readSession('scheduling.md');
  const examples = await readExamples('scheduling.md');
  assert.deepEqual(
    examples.map(({ name }) => name),
    ['job', 'gang'],
  );
  assert.equal(commands.length, 8);
  const server = await startServer();
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-scheduling-'));
  try {
    await writeExamples(folder, examples);
    await compileExamples(folder);
    const run = async ({ line, output }: (typeof commands)[number]): Promise<void> => {
      const { code, stdout, stderr } = await placement(line.split(' '), { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' });
      assert.equal(code, 0, `${line}: ${stderr}`);
      if (output !== '') assert.equal(stdout, output, line);
    };
    // The last command is between the examples.
    for (const command of commands.slice(0, -1)) await run(command);
    for (const { name, output } of examples) {
      assert.equal(await runExample(folder, name, { OS_ENDPOINT: server.url }), output, name);
      if (name === 'job') for (const command of commands.slice(-1)) await run(command);
    }
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
});
