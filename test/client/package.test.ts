import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { connect } from '../../src/client/index.ts';
import { newestVersion } from '../support/requests.ts';
import { project, readExamples } from './documentation.ts';

/*
 * The published packages, as a user who installs them gets them: packed, installed in an empty folder, compiled against, and
 * run with each supported Node.js. The test needs packages from the npm registry.
 */

const exec = promisify(execFile);
const minutes = 60_000;

let folder: string;

/** The example of the README of placement-client. It runs in the folder `client`, where only this package is installed. */
let example = '';

/** The path of each Node.js. With 20 the package can only be installed. 24 runs the tests. */
const nodes: Record<'20' | '22' | '24', string> = { '20': '', '22': '', '24': process.execPath };

const packed = (name: string): string => path.join(folder, `${name}.tgz`);

const npm = (args: readonly string[], cwd: string) =>
  exec('npm', [...args, '--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error'], {
    cwd,
    timeout: 5 * minutes,
  });

/** Runs a program of node_modules/.bin to its end. */
const runCommand = (
  node: string,
  name: string,
  args: readonly string[],
  cwd: string,
  env: Record<string, string> = {},
) =>
  exec(node, [path.join(folder, 'node_modules', '.bin', name), ...args], {
    cwd,
    timeout: minutes,
    env: { PATH: process.env.PATH, HOME: cwd, ...env },
  });

before(
  async () => {
    folder = await mkdtemp(path.join(os.tmpdir(), 'placement-package-'));
    for (const name of ['placement', 'placement-client']) {
      const workspace = name === 'placement' ? [] : ['--workspace', name];
      const { stdout } = await npm(['pack', '--pack-destination', folder, ...workspace], project);
      await rename(path.join(folder, stdout.trim().split('\n').at(-1) ?? ''), packed(name));
    }
    await writeFile(path.join(folder, 'package.json'), '{"type": "module", "private": true}');
    await npm(['install', packed('placement')], folder);
    // Node.js is installed in its own folder, because the empty folder must have only the package.
    const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
    for (const version of ['20', '22'] as const) {
      const other = path.join(folder, `node-${version}`);
      await mkdir(other);
      await writeFile(path.join(other, 'package.json'), '{"private": true}');
      await npm(['install', `${name}@${version}`], other);
      nodes[version] = path.join(other, 'node_modules', name, 'bin', 'node');
    }
  },
  { timeout: 10 * minutes },
);

after(() => rm(folder, { recursive: true, force: true }));

test('the types of placement/client compile, also without the types of Node.js', async () => {
  const compiler = path.join(project, 'node_modules', '.bin', 'tsc');
  const check = `
    import { connect, type Provider } from 'placement/client';
    const placement = connect({ endpoint: 'http://127.0.0.1:1', auth: 'admin', version: '1.39' });
    export const root: (provider: Provider<'1.39'>) => string = (provider) => provider.root_provider_uuid;
    // @ts-expect-error: a claim of 1.39 says what kind of consumer it is
    export const claim = () => placement.allocations.set('', { allocations: {}, project_id: '', user_id: '', consumer_generation: 0 });
  `;
  const strict = { strict: true, module: 'nodenext', target: 'es2024', noEmit: true, exactOptionalPropertyTypes: true };
  const compile = async (name: string, files: Readonly<Record<string, string>>, compilerOptions: object) => {
    const base = path.join(folder, name);
    await mkdir(base);
    for (const [file, text] of Object.entries(files)) await writeFile(path.join(base, file), text);
    const settings = { compilerOptions: { ...strict, ...compilerOptions }, include: ['*.ts'] };
    await writeFile(path.join(base, 'tsconfig.json'), JSON.stringify(settings));
    await exec(compiler, ['-p', base]).catch(({ stdout }) => assert.fail(stdout));
  };
  await compile('browser', { 'check.ts': check }, { lib: ['es2024', 'dom'], types: [] });
  const examples = (await readExamples()).map(({ name, code }) => [`${name}.ts`, code] as const);
  const typeRoots = [path.join(project, 'node_modules', '@types')];
  await compile('examples', Object.fromEntries(examples), { lib: ['es2024'], typeRoots, types: ['node'] });
});

test('the package has types for the client alone, and no source maps', async () => {
  const files = await readdir(path.join(folder, 'node_modules', 'placement', 'dist'), { recursive: true });
  const types = files.filter((file) => file.endsWith('.d.ts'));
  assert.ok(types.includes(path.join('src', 'client', 'index.d.ts')));
  assert.deepEqual(
    types.filter((file) => path.dirname(file) !== path.join('src', 'client')),
    [],
  );
  assert.deepEqual(
    files.filter((file) => file.endsWith('.map')),
    [],
  );
});

test('with Node.js 20 each command names the version that it needs', { timeout: minutes }, async () => {
  for (const name of ['placement', 'placement-api', 'placement-manage', 'placement-status']) {
    const refused = await runCommand(nodes['20'], name, ['--help'], folder).then(
      () => assert.fail(`${name} runs`),
      (ended) => ended,
    );
    assert.equal(refused.code, name === 'placement-status' ? 255 : 2);
    assert.match(
      refused.stderr,
      new RegExp(`^${name}: This is Node\\.js 20\\..* too old\\. Use 22\\.13 or newer.*\n$`),
    );
  }
});

test('npm with Node.js 20 warns that the packages need a newer Node.js', { timeout: minutes }, async () => {
  const npmProgram = await realpath((await exec('which', ['npm'])).stdout.trim());
  const base = path.join(folder, 'node-20');
  for (const name of ['placement', 'placement-client']) {
    const flags = ['--dry-run', '--prefer-offline', '--no-audit', '--no-fund', '--loglevel=warn'];
    const { stderr } = await exec(nodes['20'], [npmProgram, 'install', packed(name), ...flags], { cwd: base });
    assert.match(stderr, new RegExp(`EBADENGINE[\\s\\S]*package: '${name}@[\\s\\S]*node: '>=22\\.13'`));
  }
});

test('npx placement runs the command of the installed package', { timeout: minutes }, async () => {
  const { stdout } = await exec('npx', ['placement', '--version'], { cwd: folder });
  assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
});

test('placement-client is the client alone, with a reference of its methods', { timeout: 8 * minutes }, async () => {
  const base = path.join(folder, 'client');
  await mkdir(base);
  await writeFile(path.join(base, 'package.json'), '{"type": "module", "private": true}');
  await npm(['install', packed('placement-client')], base);
  assert.deepEqual(
    (await readdir(path.join(base, 'node_modules'))).filter((name) => !name.startsWith('.')),
    ['placement-client'],
  );
  const files = path.join(base, 'node_modules', 'placement-client');
  const own = JSON.parse(await readFile(path.join(files, 'package.json'), 'utf8'));
  const service = JSON.parse(await readFile(path.join(project, 'package.json'), 'utf8'));
  assert.deepEqual([own.version, own.engines, own.license], [service.version, service.engines, service.license]);
  assert.ok((await readFile(path.join(files, 'LICENSE'), 'utf8')).includes('Apache License'));

  const reference = await readFile(path.join(files, 'dist', 'reference', 'reference.md'), 'utf8');
  const calls = connect({ endpoint: 'http://127.0.0.1:1', auth: 'admin' });
  const methods = Object.values(calls).flatMap((each) => (typeof each === 'object' ? Object.keys(each) : []));
  assert.ok(methods.length > 40);
  const functions = ['retryConflicts', 'consumerUuid', 'isNoCandidates', 'keystone'];
  for (const name of [...methods, ...Object.keys(calls), ...functions]) {
    assert.match(reference, new RegExp(`^#+ ${name}(\\(\\))?$`, 'm'), name);
  }
  assert.match(reference, /Finds a place for a consumer and claims it, in one request/, 'the text of TSDoc');

  // The tests with each Node.js run it.
  const [, code = ''] = /^```ts\n([\s\S]*?)^```$/m.exec(await readFile(path.join(files, 'README.md'), 'utf8')) ?? [];
  assert.ok(code.includes('http://127.0.0.1:8778'));
  example = code;
});

for (const version of ['22', '24'] as const) {
  test(`with Node.js ${version} the four commands, the client and its example work`, {
    timeout: 8 * minutes,
  }, async () => {
    const node = nodes[version];
    const { stdout: said } = await exec(node, ['--version']);
    assert.match(said, new RegExp(`^v${version}\\.`));
    const home = path.join(folder, `home-${version}`);
    await mkdir(home);

    const { version: packed } = JSON.parse(await readFile(path.join(project, 'package.json'), 'utf8'));
    for (const name of ['placement', 'placement-api', 'placement-manage', 'placement-status']) {
      assert.equal((await runCommand(node, name, ['--version'], home)).stdout, `${packed}\n`, name);
    }

    const { child, url } = await serve(node, home);
    try {
      const page = await (await fetch(`${url}/console`)).text();
      const scriptUrl = `${url}/${/src="(console\/main-\w+\.js)"/.exec(page)?.[1]}`;
      const script = await fetch(scriptUrl, { headers: { 'accept-encoding': 'br' } });
      assert.equal(script.headers.get('content-type'), 'text/javascript; charset=utf-8');
      assert.equal(script.headers.get('content-encoding'), 'br');
      const env = { OS_ENDPOINT: url, OS_TOKEN: 'admin' };
      const { stdout: spoken } = await runCommand(node, 'placement', ['version', '--json'], home, env);
      assert.deepEqual(JSON.parse(spoken), { version: newestVersion, min: '1.0', max: newestVersion });
      await runCommand(node, 'placement', ['provider', 'create', 'host-1'], home, env);
      const program = `
        import { connect } from 'placement/client';
        const placement = connect({ endpoint: process.env.OS_ENDPOINT, auth: 'admin' });
        console.log((await placement.providers.list()).map(({ name }) => name).join());
      `;
      await writeFile(path.join(folder, `program-${version}.js`), program);
      const { stdout } = await exec(node, [path.join(folder, `program-${version}.js`)], { env, timeout: minutes });
      assert.equal(stdout, 'host-1\n');
      const base = path.join(folder, 'client');
      await writeFile(path.join(base, 'example.js'), example.replace('http://127.0.0.1:8778', url));
      assert.equal((await exec(node, ['example.js'], { cwd: base })).stdout, 'All GPUs are taken.\n');
    } finally {
      child.kill('SIGTERM');
    }
    await new Promise((resolve) => child.once('exit', resolve));

    const { stdout: revision } = await runCommand(node, 'placement-manage', ['db', 'version'], home);
    assert.match(revision, /^[0-9a-f]{12}\n$/);
    const { stdout: checked } = await runCommand(node, 'placement-status', ['upgrade', 'check', '--json'], home).catch(
      // The exit code 1 is a warning.
      (ended) => (ended.code === 1 ? ended : Promise.reject(ended)),
    );
    assert.ok(checked.length > 0);
  });
}

/** Starts the installed service without any configuration. */
async function serve(node: string, cwd: string): Promise<{ child: ChildProcess; url: string }> {
  const command = path.join(folder, 'node_modules', '.bin', 'placement-api');
  const child = spawn(node, [command, '--port', '0'], { cwd, env: { PATH: process.env.PATH, HOME: cwd } });
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    const look = (chunk: Buffer): void => {
      said += chunk;
      const match = /listens on (http:\S+)/.exec(said);
      if (match?.[1] !== undefined) resolve(match[1]);
    };
    child.stdout.on('data', look);
    child.stderr.on('data', look);
    child.once('exit', (code) => reject(new Error(`placement-api ended with ${code}: ${said}`)));
  });
  return { child, url };
}
