import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placement } from './command.ts';
import { readSession } from './documentation.ts';
import { startServer } from './servers.ts';

const hosts = [
  ['host-1', 'VCPU=16', 'MEMORY_MB=32768'],
  ['host-2', 'VCPU=16', 'MEMORY_MB=32768'],
  ['host-3', 'VCPU=6', 'MEMORY_MB=32768'],
] as const;

test('the session of docs/why.md prints the documented output', async () => {
  const commands = await readSession('why.md');
  assert.equal(commands.length, 4);

  const server = await startServer();
  try {
    const run = async (line: string): Promise<string> => {
      const { code, stdout, stderr } = await placement(line.split(' '), { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' });
      assert.equal(code, 0, `${line}: ${stderr}`);
      return stdout;
    };
    for (const [place, [name, ...inventories]] of hosts.entries()) {
      await run(`provider create ${name} --uuid 00000000-0000-4000-8000-00000000000${place + 1}`);
      await run(`inventory set ${name} ${inventories.join(' ')}`);
    }
    await run('trait add host-3 STORAGE_DISK_SSD');
    for (const { line, output } of commands) {
      const printed = await run(line);
      if (output !== '') assert.equal(printed, output, line);
    }
  } finally {
    await server.close();
  }
});
