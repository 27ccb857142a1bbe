import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placement } from './command.ts';
import { readSession } from './documentation.ts';
import { startServer } from './servers.ts';

/** Documents whose commands work on an empty service, with how many there are, and for how many of them an output is shown. */
const sessions = [
  { document: 'concepts.md', shown: 12, withOutput: 3 },
  { document: 'why.md', shown: 11, withOutput: 3 },
];

for (const { document, shown, withOutput } of sessions) {
  test(`the commands of docs/${document} print the output shown`, async () => {
    const commands = await readSession(document);
    assert.deepEqual([commands.length, commands.filter(({ output }) => output !== '').length], [shown, withOutput]);
    const server = await startServer();
    try {
      for (const { line, output } of commands) {
        const env = { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' };
        const { code, stdout, stderr } = await placement(line.split(' '), env);
        assert.equal(code, 0, `${line}: ${stderr}`);
        if (output !== '') assert.equal(stdout, output, line);
      }
    } finally {
      await server.close();
    }
  });
}
