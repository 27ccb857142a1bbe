/** Clients of OpenStack that know nothing of version 2 send and get what they send to and get from an OpenStack Placement. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { request } from 'node:http';
import path from 'node:path';
import { after, before, suite, test } from 'node:test';
import { promisify } from 'node:util';
import { forward, startFront, startServer, type TestServer } from '../client/servers.ts';
import { postgresqlServer } from '../support/engines.ts';
import { createDatabase, type FreshDatabase } from '../support/postgresql.ts';
import { startUpstream, type Upstream, upstreamDbSync } from './placement.ts';

const run = async (program: string, ...args: readonly string[]): Promise<string> =>
  (await promisify(execFile)(program, args, { env: { PATH: process.env.PATH, HOME: '/nonexistent' } })).stdout;

const script = (name: string, ...args: readonly string[]): Promise<string> =>
  run('/usr/bin/python3', path.join(import.meta.dirname, name), ...args);

/** A front of a service, and the requests that came to it, without what names the address of the service. */
async function recorded(
  url: string,
): Promise<{ readonly url: string; sent(): readonly object[]; close(): Promise<void> }> {
  const front = await startFront((incoming, response) => forward(url, incoming, response));
  return {
    url: front.url,
    close: front.close,
    sent: () =>
      front.seen.map(({ method, url, headers }) => {
        const { host: _, connection: __, ...others } = headers;
        return { method, url, headers: others };
      }),
  };
}

suite('clients of OpenStack', () => {
  let database: FreshDatabase;
  let upstream: Upstream;
  let server: TestServer;

  before(async () => {
    database = await createDatabase(await postgresqlServer());
    await upstreamDbSync(database.url);
    upstream = await startUpstream(database.url);
    server = await startServer();
  });

  after(async () => {
    await server?.close();
    await upstream?.stop();
    await database?.drop();
  });

  test('openstacksdk sends to both the same, and gets the same', async () => {
    const fronts = await Promise.all([recorded(upstream.url), recorded(server.url)]);
    const [theirs, ours] = await Promise.all(fronts.map(({ url }) => script('sdk.py', url)));
    assert.equal(ours, theirs);
    assert.match(String(ours), /latest 200 placement 1\.39/);
    const [sentToThem, sentToUs] = fronts.map(({ sent }) => sent());
    assert.deepEqual(sentToUs, sentToThem);
    assert.ok((sentToUs ?? []).length > 10);
    for (const front of fronts) await front.close();
  });

  test('openstacksdk gets version 2 of this service where a call names it', async () => {
    assert.match(await script('sdk.py', server.url, '--ours'), /^version 2 200$/m);
  });

  test('osc-placement sends to both the same, and gets the same', async () => {
    const uuid = '00000000-0000-4000-8000-00000000000b';
    const commands = [
      ['provider', 'create', 'host-2', '--uuid', uuid],
      ['provider', 'inventory', 'set', uuid, '--resource', 'VCPU=8'],
      ['provider', 'list', '--name', 'host-2'],
      ['provider', 'show', uuid],
      ['provider', 'usage', 'show', uuid],
      ['provider', 'delete', uuid],
    ];
    const fronts = await Promise.all([recorded(upstream.url), recorded(server.url)]);
    for (const command of commands) {
      const printed = fronts.map(({ url }) => {
        const access = ['--os-auth-type', 'admin_token', '--os-endpoint', url, '--os-token', 'admin'];
        const format = command[1] === 'delete' ? [] : ['-f', 'json'];
        return run(
          '/usr/bin/openstack',
          ...access,
          '--os-placement-api-version',
          '1.39',
          'resource',
          ...command,
          ...format,
        );
      });
      const [theirs, ours] = await Promise.all(printed);
      assert.equal(ours, theirs, command.join(' '));
    }
    const [sentToThem, sentToUs] = fronts.map(({ sent }) => sent());
    assert.deepEqual(sentToUs, sentToThem);
    for (const front of fronts) await front.close();
  });

  test('the negotiation of python-ironicclient arrives at 1.39', async () => {
    const front = await startFront((incoming, response) => {
      const version = incoming.headers['x-openstack-ironic-api-version'];
      const headers = {
        ...incoming.headers,
        ...(version === undefined ? {} : { 'openstack-api-version': `placement ${version}` }),
      };
      const { method, url = '/' } = incoming;
      // The client asks there for the range of versions.
      const mappedUrl = url === '/v1' ? '/resource_providers' : url;
      const onward = request(server.url + mappedUrl, { method, headers, agent: false }, (answer) => {
        const mapped = Object.entries(answer.headers).flatMap(([name, value]) => {
          const known = /^openstack-api-(.*version)$/.exec(name);
          if (known === null) return [[name, value] as const];
          return [[`x-openstack-ironic-api-${known[1]}`, String(value).replace('placement ', '')] as const];
        });
        response.writeHead(answer.statusCode ?? 502, Object.fromEntries(mapped));
        answer.pipe(response);
      });
      incoming.pipe(onward);
    });
    try {
      assert.equal(await script('negotiate.py', front.url, 'default'), "1.39 negotiated ['resource_providers']\n");
      assert.match(await script('negotiate.py', front.url, '1.60'), /Supported version range is:? 1\.0 to 1\.39/);
      assert.equal(await script('negotiate.py', front.url, '1.20'), "1.20 user ['resource_providers']\n");
    } finally {
      await front.close();
    }
  });
});
