import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placement } from './command.ts';
import { readSession } from './documentation.ts';
import { startServer } from './servers.ts';

test('the session of docs/why.md works on an empty service and prints the documented output', async () => {
  const commands = await readSession('why.md');
  assert.equal(commands.length, 11);
  assert.equal(commands.filter(({ output }) => output !== '').length, 3);

  const server = await startServer();
  try {
    for (const { line, output } of commands) {
      const { code, stdout, stderr } = await placement(line.split(' '), { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' });
      assert.equal(code, 0, `${line}: ${stderr}`);
      if (output !== '') assert.equal(stdout, output, line);
    }
  } finally {
    await server.close();
  }
});
