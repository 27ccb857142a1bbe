import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { connect } from '../../src/client/index.ts';
import { listen } from '../../src/http/server/listen.ts';
import { mustFail, placement } from '../client/command.ts';
import { project } from '../client/documentation.ts';
import { engines } from '../support/engines.ts';
import { quickStart } from '../support/quick_start.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const demoProgram = path.join(project, 'src', 'bin', 'placement-demo.ts');

for (const engine of engines) {
  test(`placement demo fills an empty service with a fleet by few requests, on ${engine}`, () =>
    withTestService(engine, {}, async ({ app }) => {
      const counts = new Map<string, number>();
      const server = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 200 });
      try {
        const env = { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' };
        await mustFail(/whole number from 1/, ['demo', '--hosts', '0'], env, 'wrongUsage');
        const { stdout, stderr, code } = await placement(['demo', '--hosts', '70', '--json'], env);
        assert.equal(code, 0, stderr);
        const printed: { hosts: number; providers: number; consumers: number } = JSON.parse(stdout);
        const client = connect({ endpoint: server.url, auth: 'admin' });
        const providers = await client.providerSummaries.page({ limit: 10_000 });
        for (const { name } of providers) {
          const kind = name.replace(/\d+/g, '');
          counts.set(kind, (counts.get(kind) ?? 0) + 1);
        }
        assert.equal(printed.providers, providers.length);
        assert.equal(counts.get('rack-host'), 70);
        assert.equal(counts.get('pool'), 1);
        assert.ok((counts.get('rack-host-numa') ?? 0) > 0 && (counts.get('rack-host-gpu') ?? 0) > 0);
        const racks = new Set(providers.flatMap(({ aggregates }) => aggregates));
        assert.equal(racks.size, 3);
        let consumers = 0;
        for await (const { consumer_type } of client.consumers.list())
          consumers += consumer_type === 'INSTANCE' ? 1 : 0;
        assert.equal(printed.consumers, consumers);
        assert.ok(consumers > 70, `${consumers}`);
        await mustFail(/The service has providers, such as .*only made in an empty service/s, ['demo'], env, 'failed');
      } finally {
        await server.close();
      }
    }));
}

test('placement demo makes nothing in a service that is too old to place consumers', () =>
  withTestService('embedded', { api: { maxMicroversion: '2.3' } }, async ({ app }) => {
    const server = await listen(app, { host: '127.0.0.1', port: 0, drainMs: 200 });
    try {
      const env = { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' };
      await mustFail(
        /needs microversion 2\.4, and requests to the service are at 2\.3/,
        ['demo', '--hosts', '3'],
        env,
        'failed',
      );
      const client = connect({ endpoint: server.url, auth: 'admin' });
      assert.deepEqual(await client.providers.list(), []);
      assert.deepEqual(await client.traits.list({ name: 'startswith:CUSTOM_' }), []);
    } finally {
      await server.close();
    }
  }));

test('make demo refuses a port that is none, in a sentence', async () => {
  for (const port of ['abc', '65536', '-1']) {
    const child = spawn(process.execPath, [demoProgram, '--port', port], { env: { ...process.env, ...quickStart } });
    let said = '';
    child.stderr.on('data', (chunk: Buffer) => {
      said += chunk;
    });
    const code = await new Promise((resolve) => child.once('close', resolve));
    assert.equal(code, 2, said);
    assert.match(said, /'--port <number>' argument '\S+' is invalid\. It is a whole number from 0 to 65535\./);
  }
});

test('make demo serves a fleet that lives, and says where its console is', async () => {
  const child = spawn(process.execPath, [demoProgram, '--hosts', '3', '--port', '0'], {
    env: { ...process.env, ...quickStart },
  });
  try {
    let said = '';
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.on('data', (chunk: Buffer) => {
        said += chunk;
        const [, address] = /Open (http:\S+)\/console in a browser/.exec(said) ?? [];
        if (address !== undefined) resolve(address);
      });
      child.stderr.on('data', (chunk: Buffer) => {
        said += chunk;
      });
      child.once('exit', (code) => reject(new Error(`It ended with ${code}: ${said}`)));
    });
    assert.equal((await fetch(`${url}/console`)).status, 200);
    const client = connect({ endpoint: url, auth: 'admin' });
    for await (const change of client.changes()) if ('resource_provider' in change) break;
    await until('a job waits for the limit of its project', async () =>
      (await client.waiting.page({ project_id: 'research', line: 'training' })).some(
        (claim) => claim.waits_for === 'limit',
      ),
    );
    const { JOB } = (await client.limits.show('research')).consumers;
    assert.equal(JOB?.limit, 4);
    assert.ok(JOB.used > 0 && JOB.used <= 4, `${JOB.used}`);
    const held = await client.holdings.page({ project_id: 'research' });
    assert.ok(
      held.every(({ name, expires_at }) => /^training-\d+$/.test(name ?? '') && expires_at !== null),
      'jobs end by themselves',
    );
    const records = await Array.fromAsync(client.usageRecords.list({ project_id: 'research' }));
    assert.ok(records.length > 0, 'the history is on');
  } finally {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGTERM');
    assert.equal(await ended, 0);
  }
});
