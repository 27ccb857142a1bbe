/** Which modules a command line loads: each costs time, and a script runs the command again and again. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { placement } from './command.ts';
import { startServer } from './servers.ts';

const recorder = pathToFileURL(path.join(import.meta.dirname, '..', 'manage', 'record_modules.ts')).href;

let folder: string;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'placement-loaded-'));
});
after(() => rm(folder, { recursive: true }));

/** Runs a command line that must succeed. @returns what it prints, and the addresses of the modules that it loads, in their order */
async function loadedBy(args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  const file = path.join(folder, 'modules');
  await writeFile(file, '');
  const recording = { NODE_OPTIONS: `--import=${recorder}`, RECORDED_MODULES: file };
  const { code, stdout, stderr } = await placement(args, { ...recording, ...env });
  assert.equal(code, 0, stderr);
  return { stdout, modules: (await readFile(file, 'utf8')).trim().split('\n') };
}

const nameOf = (url: string): string => url.replace(/^.*\//, '').replace(/\.ts$/, '');
const inFolder = (modules: readonly string[], name: string) => modules.filter((url) => url.includes(`/${name}/`));

test('a command line loads its own command, and nothing of the service', async () => {
  const server = await startServer();
  try {
    const { modules } = await loadedBy(['provider', 'list'], { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' });
    const names = modules.map(nameOf);
    assert.ok(names.includes('provider_commands'), 'modules are recorded');
    const commands = inFolder(modules, 'src/cli')
      .map(nameOf)
      .filter((name) => /_commands?$/.test(name));
    assert.deepEqual(commands, ['provider_commands']);
    const packages = inFolder(modules, 'node_modules').filter((url) => !url.includes('/node_modules/commander/'));
    const service = modules.filter((url) => /\/(db|src\/(api|http|log|access|fleet|claims|demo|manage))\//.test(url));
    const config = inFolder(modules, 'src/config').map(nameOf);
    assert.deepEqual({ packages, service, config }, { packages: [], service: [], config: ['version'] });
    for (const name of ['node:tls', 'node:http', 'node:net']) assert.ok(!modules.includes(name), name);
    const [cache, rest] = [names.indexOf('compile_cache'), names.indexOf('run_placement')];
    assert.ok(cache !== -1 && cache < rest, 'compiled code is kept from the first module on that it could be kept of');
  } finally {
    await server.close();
  }
});

test('each command that the help lists is loaded without the other commands', { timeout: 300_000 }, async () => {
  const { stdout, modules: all } = await loadedBy(['--help']);
  const commands = Array.from(
    /^Commands:\n([\s\S]*?)\n\n/m.exec(stdout)?.[1]?.matchAll(/^ {2}(\w+)/gm) ?? [],
    ([, name = '']) => name,
  );
  assert.ok(commands.includes('provider') && commands.includes('apply') && commands.length > 15, stdout);
  for (const name of commands.filter((one) => one !== 'help')) {
    const help = await loadedBy(['--json', '--os-token', 'provider', name, '--help']);
    assert.match(help.stdout, new RegExp(`^Usage: placement ${name} `));
    const [own, whole] = [inFolder(help.modules, 'src/cli').length, inFolder(all, 'src/cli').length];
    assert.ok(own <= whole - 10, `${name} loads ${own} of the ${whole} modules of the command`);
  }
});
