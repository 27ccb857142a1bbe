/** The files of deploy/cluster: its README has the values that they need, and HAProxy and PgBouncer are set for what the service sends. */
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { planning } from '../../db/engine/pool.ts';
import { filledTemplate } from '../support/filled_template.ts';
import { freePort } from '../support/free_port.ts';
import { hasHaproxy, startHaproxy } from '../support/haproxy.ts';

const folder = path.join(import.meta.dirname, '..', '..', 'deploy', 'cluster');
const read = (file: string): string => readFileSync(path.join(folder, file), 'utf8');

test('the README of deploy/cluster has each value that its files need, and no others', () => {
  const files = readdirSync(folder).filter((file) => file !== 'README.md');
  const needed = files.flatMap((file) => [...read(file).matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name));
  // The names for nodes 2 and 3, and for processes 2 and 3, have the same form as those for 1.
  const named = needed.filter((name) => !/^[NP][23]_/.test(name));
  const table = read('README.md').split('| value | |')[1]?.split('\n\n')[0] ?? '';
  const columns = [...table.matchAll(/^\| (`.*?) \| /gm)].map(([, names = '']) => names).join();
  const documented = [...columns.matchAll(/`([A-Z]\w*_\w+|[A-Z]{4,})`/g)].map(([, name = '']) => name);
  assert.deepEqual(documented.sort(), [...new Set(named)].sort());
});

test('certificates.sh makes nothing where a name has no address, or no folder is named', () => {
  for (const args of [[], ['placement-cluster', 'n1']]) {
    const { status, stderr } = spawnSync('sh', [path.join(folder, 'certificates.sh'), ...args], { encoding: 'utf8' });
    assert.equal(status, 2);
    assert.match(stderr, /^Each name needs an address: sh certificates\.sh FOLDER NAME ADDRESS/);
  }
});

test('PgBouncer of the cluster sets on each connection how PostgreSQL plans the statements of requests', () => {
  const [, query = ''] = /connect_query='([^']*)'/.exec(read('pgbouncer.ini')) ?? [];
  const set = query.split('; ');
  assert.deepEqual(
    planning.filter((each) => !set.includes(each)),
    [],
  );
});

test('HAProxy of the cluster passes on 128 KiB of headers, and says in the form of the API that a process broke off', async (t) => {
  if (!hasHaproxy()) {
    t.skip('haproxy is not installed');
    return;
  }
  const certificates = await mkdtemp(path.join(os.tmpdir(), 'placement-certificates-'));
  // In the place of a process of the service.
  const server = http.createServer({ maxHeaderSize: 256 * 1024 }, ({ url, socket }, response) => {
    if (url === '/broken') socket.destroy();
    else response.end(`${url?.length}`);
  });
  try {
    const [port, apiPort] = [await freePort(), await freePort()];
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    execFileSync('sh', [path.join(folder, 'certificates.sh'), certificates], { stdio: 'pipe' });
    await chmod(certificates, 0o755);
    // Nothing answers for the nodes of the database.
    const numbered = ['1', '2', '3'].flatMap((number) =>
      [`N${number}_PORT`, `N${number}_REST_PORT`, `P${number}_PORT`].map((name) => [name, port]),
    );
    const hosts = ['DATABASE', 'API', 'N1', 'N2', 'N3', 'P1', 'P2', 'P3'].map((name) => [`${name}_HOST`, '127.0.0.1']);
    const config = await filledTemplate('cluster/haproxy.cfg', {
      ...Object.fromEntries([...numbered, ...hosts]),
      CERTIFICATES: certificates,
      DATABASE_PORT: await freePort(),
      API_PORT: apiPort,
    });
    // Each request has a connection of its own: HAProxy ends one that was used before without an answer.
    const get = async (target: string): Promise<readonly [status: number | undefined, body: string]> => {
      const sent = http.get(`http://127.0.0.1:${apiPort}${target}`, { agent: false });
      const [answer]: readonly http.IncomingMessage[] = await once(sent, 'response');
      assert.ok(answer);
      return [answer.statusCode, await text(answer)];
    };
    const proxy = await startHaproxy(config, async () => assert.equal((await get('/'))[0], 200));
    try {
      const long = `/resource_providers?member_of=in:${'x'.repeat(100_000)}`;
      assert.deepEqual(await get(long), [200, `${long.length}`]);
      const [status, body] = await get('/broken');
      assert.equal(status, 502);
      assert.match(body, /^\{"errors": \[\{"status": 502,/);
    } finally {
      await proxy.stop();
    }
  } finally {
    server.closeAllConnections();
    server.close();
    await rm(certificates, { recursive: true });
  }
});
