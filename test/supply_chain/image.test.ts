/**
 * The image of deploy/Dockerfile, as far as it can be made without Docker: its build runs on the files that Docker would get, and its
 * program on the files that the image would have.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { copiedBy, isSent, readStages, textsOf } from './dockerfile.ts';
import { bundled, nameAt, productionPackages, project } from './production.ts';

const exec = promisify(execFile);
const minutes = 60_000;
const stages = readStages();
const [build, dependencies, image] = stages;

let folder: string;
before(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), 'placement-image-'));
});
after(() => rm(folder, { recursive: true, force: true }));

test('the Dockerfile has the three stages that this file knows', () => {
  assert.deepEqual(
    stages.map(({ name }) => name),
    ['build', 'dependencies', ''],
  );
  assert.deepEqual(
    textsOf(image, 'COPY').filter((text) => text.startsWith('--from=')),
    [
      '--from=dependencies /dependencies/node_modules /opt/placement/node_modules',
      '--from=build /build/dist /opt/placement/dist',
    ],
  );
});

test('images are named by an exact version, and the Node.js image has the version of the tests', async () => {
  const text = await readFile(path.join(project, 'deploy/Dockerfile'), 'utf8');
  const bases = [...text.matchAll(/^FROM (\S+)/gm)].map(([, base = '']) => base);
  assert.deepEqual(new Set(bases), new Set([`node:${process.versions.node}-slim`]));
  const compose = await readFile(path.join(project, 'deploy/compose.yaml'), 'utf8');
  const images = [...compose.matchAll(/^ *image: (\S+)$/gm)].map(([, image = '']) => image);
  assert.ok(images.length > 0);
  for (const image of images) assert.match(image, /^[\w/.-]+:\d+(\.\d+)+(-\w+)?(@sha256:[0-9a-f]{64})?$/);
});

test('everything that the Dockerfile copies exists, and .dockerignore lets it through', () => {
  const copied = stages.flatMap(copiedBy);
  assert.ok(copied.length > 8);
  for (const { source } of copied) {
    assert.ok(existsSync(path.join(project, source)), `${source} exists`);
    assert.ok(isSent(source), `.dockerignore lets ${source} through`);
  }
  for (const index of ['node_modules', '.git', 'test', 'client/README.md', 'placement-data'])
    assert.ok(!isSent(index), `${index} is left out`);
});

test('the image is built from what Docker gets, and serves the API and the console without packages for development', {
  timeout: 5 * minutes,
}, async () => {
  // The stage `build`. The packages of the checkout are those that npm would install by the same lock file.
  const source = path.join(folder, 'build');
  for (const each of copiedBy(build))
    if (isSent(each.source))
      await cp(path.join(project, each.source), path.join(source, each.target), { recursive: true });
  await symlink(path.join(project, 'node_modules'), path.join(source, 'node_modules'));
  const [install, ...commands] = textsOf(build, 'RUN');
  assert.match(install ?? '', /^npm ci --ignore-scripts /);
  assert.ok(commands.length > 0);
  for (const command of commands) await exec('sh', ['-c', command], { cwd: source });
  const built = await readdir(path.join(source, 'dist'), { recursive: true });
  assert.deepEqual(
    built.filter((file) => /\.(ts|map)$/.test(file)),
    [],
    'nothing for development is left',
  );

  // The stage `dependencies` runs npm. Here the same packages, which the lock file names, are copied from the checkout.
  assert.match(textsOf(dependencies, 'RUN')[0] ?? '', /^npm ci --omit=dev --ignore-scripts /);
  const installed = path.join(folder, 'opt', 'placement');
  for (const index of productionPackages().keys()) {
    if (bundled.some((name) => name === nameAt(index))) continue;
    await mkdir(path.dirname(path.join(installed, index)), { recursive: true });
    // Copied, because Node.js looks for the packages of a link where the link leads.
    const isOwn = (file: string) =>
      !path.relative(path.join(project, index), file).split(path.sep).includes('node_modules');
    await cp(path.join(project, index), path.join(installed, index), { recursive: true, filter: isOwn });
  }

  // The last stage.
  for (const { source: from, target } of copiedBy(image)) await cp(path.join(project, from), path.join(folder, target));
  await cp(path.join(source, 'dist'), path.join(installed, 'dist'), { recursive: true });
  const commandsOfImage = ['placement', 'placement-api', 'placement-manage', 'placement-status'];
  assert.ok(textsOf(image, 'RUN')[0]?.includes(`for command in ${commandsOfImage.join(' ')}; do`));
  const program = (name: string) => path.join(installed, 'dist', 'src', 'bin', `${name}.js`);
  const home = path.join(folder, 'home');
  await mkdir(home);
  const env = {
    PATH: `${path.dirname(process.execPath)}:${process.env.PATH}`,
    OS_API__AUTH_STRATEGY: 'noauth2',
    OS_CONSOLE__ENABLED: 'true',
    ...Object.fromEntries(textsOf(image, 'ENV').map((text) => text.split('='))),
  };
  for (const name of commandsOfImage) {
    const { stdout } = await exec(program(name), ['--version'], { cwd: home, env });
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/, name);
  }
  assert.deepEqual(textsOf(image, 'CMD'), ['["placement-api"]']);
  // A file that is mounted decides where the service listens.
  const mounted = path.join(folder, 'mounted.conf');
  await writeFile(mounted, '[api]\nhost = 192.0.2.7\n');
  const shown = await exec(program('placement-api'), ['--config-file', mounted, '--show-config'], { cwd: home, env });
  assert.match(shown.stdout, /host = 192\.0\.2\.7\b/);
  const child = spawn(program('placement-api'), ['--port', '0'], { cwd: home, env });
  try {
    let said = '';
    const url = await new Promise<string>((resolve, reject) => {
      const look = (chunk: Buffer): void => {
        said += chunk;
        const match = /listens on (http:\/\/[\w.]+:\d+)/.exec(said);
        if (match?.[1] !== undefined) resolve(match[1]);
      };
      child.stdout.on('data', look);
      child.stderr.on('data', look);
      child.once('exit', (code) => reject(new Error(`placement-api ended with ${code}: ${said}`)));
      child.once('error', reject);
    });
    assert.match(url, /^http:\/\/0\.0\.0\.0:/, 'other machines reach the container');
    assert.equal((await fetch(`${url}/readyz`)).status, 200);
    const page = await fetch(`${url}/console`);
    assert.equal(page.status, 200);
    const files = [...(await page.text()).matchAll(/"(console\/main-\w+\.(?:js|css))"/g)].map(([, name]) => name);
    assert.equal(new Set(files).size, 2);
    for (const file of files) assert.equal((await fetch(`${url}/${file}`)).status, 200, file);
    const check = /CMD (\[.*\])$/.exec(textsOf(image, 'HEALTHCHECK')[0] ?? '')?.[1] ?? '[]';
    const [command = '', ...flags]: readonly string[] = JSON.parse(check);
    assert.equal(command, 'placement-api');
    const ask = (port: string) => exec(program(command), flags, { cwd: home, env: { ...env, OS_API__PORT: port } });
    const { port } = new URL(url);
    assert.equal((await ask(port)).stdout, `The service at http://127.0.0.1:${port} is ready.\n`);
    await assert.rejects(ask('1'), ({ code, stderr }) => code === 1 && /does not answer at/.test(String(stderr)));
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    await ended;
  }
});
