/** The iterator of changes, the command `watch`, and the mirror of docs/changes.md, with a real service. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { connect, type FollowedChange } from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { project } from './documentation.ts';
import { startServer } from './servers.ts';

test('changes are iterated from a token on, and the client must read everything again if the token is too old', async () => {
  const server = await startServer();
  try {
    const placement = connect({ endpoint: server.url, auth: 'admin' });
    const ending = new AbortController();
    const follow = (since?: string) => placement.changes({ since, waitSeconds: 20, signal: ending.signal });
    const changes = follow();
    const next = async (): Promise<FollowedChange> => {
      const { value } = await changes.next();
      assert.ok(value !== undefined);
      return value;
    };
    const first = await next();
    assert.ok('everything' in first);
    const nextChange = next();
    const { uuid } = await placement.providers.create({ name: 'host-1' });
    const parts = ['provider', 'inventories', 'traits', 'aggregates', 'usages'];
    const { token, ...change } = await nextChange;
    assert.deepEqual(change, { resource_provider: uuid, parts });
    await placement.traits.ensure('CUSTOM_ONE');
    await placement.providers.delete(uuid);

    // Another program continues from the token.
    const later = follow(token);
    const deleted = await later.next();
    assert.deepEqual(deleted.value, { resource_provider: uuid, deleted: true, token });
    const { value: last } = await later.next();
    assert.ok(last !== undefined && 'traits' in last && last.token !== token);

    const ended = later.next();
    ending.abort(new Error('enough'));
    await assert.rejects(ended, /enough/);
    await assert.rejects(placement.changes({ since: 'wrong' }).next(), /since is not a token/);
  } finally {
    await server.close();
  }
});

test('the mirror of docs/changes.md is right after it was killed, and placement watch prints lines', async () => {
  const server = await startServer({}, { history: { enabled: true, keep: 3600 } });
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-changes-'));
  const start = (args: readonly string[]) => {
    const child = spawn(process.execPath, args, {
      env: {
        PATH: process.env.PATH,
        OS_ENDPOINT: server.url,
        OS_TOKEN: 'admin',
        MIRROR_FILE: path.join(folder, 'mirror.json'),
      },
    });
    let output = '';
    child.stdout.on('data', (chunk) => {
      output += chunk;
    });
    child.stderr.on('data', (chunk) => {
      output += chunk;
    });
    const said = (text: string) => until(`"${text}" in: ${output}`, () => output.includes(text));
    return { said, kill: () => child.kill('SIGKILL') };
  };
  try {
    const text = await readFile(path.join(project, 'docs', 'changes.md'), 'utf8');
    const code = /^```ts mirror\n([\s\S]*?)^```$/m.exec(text)?.[1] ?? '';
    const client = path.join(project, 'src', 'client', 'index.ts');
    const program = path.join(folder, 'mirror.ts');
    await writeFile(program, code.replace("'placement/client'", `'${client}'`));
    await writeFile(path.join(folder, 'package.json'), '{"type": "module"}');
    const placement = connect({ endpoint: server.url, auth: 'admin' });
    await placement.providers.create({ name: 'host-1' });
    const mirror = start([program]);
    const watch = start([path.join(project, 'src', 'bin', 'placement.ts'), 'watch', '--parts', 'provider']);
    await mirror.said('1 host-1\n');
    await watch.said('everything: was read: 1 provider\n');
    const consumers = start([path.join(project, 'src', 'bin', 'placement.ts'), 'watch', '--parts', 'consumers']);
    await consumers.said('everything: was read: 1 provider, 0 consumers\n');
    const { uuid } = await placement.providers.create({ name: 'host-2' });
    await mirror.said('2 host-1 host-2\n');
    await watch.said('Z host-2: new: provider\n');
    await placement.inventories.set(uuid, { inventories: { VCPU: { total: 1 } }, resource_provider_generation: 0 });
    const consumer = 'a0000000-0000-4000-8000-000000000001';
    await placement.allocations.set(consumer, {
      allocations: { [uuid]: { resources: { VCPU: 1 } } },
      project_id: 'p',
      user_id: 'u',
      consumer_generation: null,
      consumer_type: 'JOB',
    });
    await consumers.said(`Z consumer ${consumer}: has VCPU=1 of host-2, project p\n`);
    await placement.allocations.delete(consumer);
    await consumers.said(`Z consumer ${consumer}: gone: released, had VCPU=1 of host-2\n`);
    mirror.kill();
    watch.kill();
    consumers.kill();
    await placement.providers.delete(uuid);
    const again = start([program]);
    await again.said('1 host-1\n');
    await placement.providers.create({ name: 'host-3' });
    await again.said('2 host-1 host-3\n');
    again.kill();
  } finally {
    await server.close();
    await rm(folder, { recursive: true });
  }
});
