/**
 * What the pods of deploy/kubernetes do, in the order in which they do it, and as they do it: on a read-only root file system with nothing but
 * the program, by a user without a name, a home, a capability or a way to get one.
 */
import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { withEmptyDatabase } from '../support/engines.ts';
import { freePort } from '../support/free_port.ts';
import { at, listAt } from '../support/requests.ts';
import { until } from '../support/until.ts';
import { containersOf, only, readManifest } from './manifests.ts';

const project = path.join(import.meta.dirname, '../..');
const canUnshare =
  process.getuid?.() === 0 &&
  spawnSync('unshare', ['--mount', 'sh', '-c', 'mount -t tmpfs tmpfs /mnt']).status === 0 &&
  spawnSync('setpriv', ['--version']).status === 0;

/**
 * Makes the root of a container, of which each mount is read-only, and runs a program there. Its arguments: the new root, the folder with the
 * programs, that with the configuration, user and group, then folders to show; `--`, and the environment and the program.
 */
const script = `
  set -e
  root=$1 commands=$2 config=$3 user=$4 group=$5
  shift 5
  mount -t tmpfs tmpfs "$root"
  show() {
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
    mount -o remount,bind,ro "$root$2"
  }
  show /usr /usr
  for each in bin sbin lib lib64; do
    if [ -L /$each ]; then cp -P /$each "$root/"; elif [ -d /$each ]; then show /$each /$each; fi
  done
  mkdir "$root/proc" "$root/dev"
  mount --rbind /proc "$root/proc"
  mount --rbind /dev "$root/dev"
  show "$commands" /commands
  show "$config" /etc/placement
  while [ "$1" != -- ]; do show "$1" "$1"; shift; done
  shift
  mount -o remount,ro "$root"
  exec chroot "$root" env -i PATH=/commands:/usr/bin:/bin "\${@:1:1}" setpriv --reuid "$user" --regid "$group" \\
    --clear-groups --no-new-privs --inh-caps=-all --ambient-caps=-all --bounding-set=-all "\${@:2}"
`;

test(
  'the Job migrates, and the Deployment serves, ends in order and writes nothing',
  {
    skip: !canUnshare && 'needs mounts of its own, as root on Linux',
  },
  () =>
    withEmptyDatabase(async (url) => {
      const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-pod-'));
      const [root, commands, config] = ['root', 'commands', 'config'].map((name) => path.join(folder, name));
      assert.ok(root !== undefined && commands !== undefined && config !== undefined);
      const running: ChildProcess[] = [];
      try {
        for (const each of [root, commands, config]) await mkdir(each);
        for (const name of ['placement-api', 'placement-manage']) {
          const text = `#!/bin/sh\nexec ${process.execPath} ${project}/src/bin/${name}.ts "$@"\n`;
          await writeFile(path.join(commands, name), text, { mode: 0o755 });
        }
        // The configuration of the manifests, but for the port, and Keystone, which is not there.
        const port = await freePort();
        const text = readManifest('placement.conf').replace('port = 8778', `port = ${port}\nauth_strategy = noauth2`);
        assert.ok(text.includes(`port = ${port}`));
        await writeFile(path.join(config, 'placement.conf'), text);
        const shown = new Set([
          project,
          await realpath(path.join(project, 'node_modules')),
          path.dirname(process.execPath),
        ]);

        const start = (kind: 'Deployment' | 'Job', container: unknown): ChildProcess => {
          const { runAsUser, runAsGroup } = Object(at(only(kind), 'spec', 'template', 'spec', 'securityContext'));
          assert.equal(at(container, 'workingDir'), '/', 'as after chroot');
          assert.deepEqual(
            listAt(container, 'env').map((variable) => at(variable, 'name')),
            ['DATABASE_URL'],
          );
          const command = listAt(container, 'command').map(String);
          const args = [root, commands, config, `${runAsUser}`, `${runAsGroup}`, ...shown, '--', `DATABASE_URL=${url}`];
          const child = spawn('unshare', ['--mount', 'bash', '-c', script, 'bash', ...args, ...command], {
            stdio: ['ignore', 'pipe', 'pipe'],
          });
          running.push(child);
          return child;
        };
        const outputOf = (child: ChildProcess): { said(): string } => {
          let said = '';
          for (const stream of [child.stdout, child.stderr]) {
            stream?.setEncoding('utf8').on('data', (chunk: string) => {
              said += chunk;
            });
          }
          return { said: () => said };
        };
        for (const container of containersOf('Job')) {
          const child = start('Job', container);
          const { said } = outputOf(child);
          const [code] = await once(child, 'close');
          assert.equal(code, 0, said());
        }

        const [container] = containersOf('Deployment');
        const child = start('Deployment', container);
        const { said } = outputOf(child);
        await until('it listens', () => {
          assert.equal(child.exitCode, null, said());
          return said().includes(' listens on http://0.0.0.0:');
        });
        for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
          const answer = await fetch(`http://127.0.0.1:${port}${at(container, probe, 'httpGet', 'path')}`);
          assert.equal(answer.status, 200, probe);
        }
        const endpoint = listAt(at(only('ServiceMonitor'), 'spec'), 'endpoints')[0];
        const scraped = await (await fetch(`http://127.0.0.1:${port}${at(endpoint, 'path')}`)).text();
        assert.match(scraped, /^placement_requests_total/m);
        const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json' };
        const body = JSON.stringify({ name: 'one' });
        const made = await fetch(`http://127.0.0.1:${port}/resource_providers`, { method: 'POST', headers, body });
        assert.equal(made.status, 201);

        const status = await readFile(`/proc/${child.pid}/status`, 'utf8');
        const field = (name: string) => new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(status)?.[1];
        assert.deepEqual(['Uid', 'Gid', 'CapEff', 'CapPrm', 'CapBnd', 'NoNewPrivs'].map(field), [
          '10001',
          '10001',
          ...Array.from({ length: 3 }, () => '0'.repeat(16)),
          '1',
        ]);
        const environment = await readFile(`/proc/${child.pid}/environ`, 'utf8');
        assert.doesNotMatch(environment, /(^|\0)HOME=/);
        assert.match(
          execFileSync('nsenter', ['-t', `${child.pid}`, '-m', 'findmnt', '-no', 'OPTIONS', root], {
            encoding: 'utf8',
          }),
          /^ro,/,
        );
        child.kill('SIGTERM');
        assert.deepEqual(await once(child, 'exit'), [0, null]);
      } finally {
        for (const each of running) each.kill('SIGKILL');
        await rm(folder, { recursive: true, force: true });
      }
    }),
);
