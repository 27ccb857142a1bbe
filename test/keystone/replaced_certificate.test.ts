/** Keystone gets a certificate of another authority, and the file of `cafile` is replaced, while the service runs. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { rm, writeFile } from 'node:fs/promises';
import https from 'node:https';
import type { AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { tlsOptions } from '../../src/access/keystone/settings.ts';
import { KeystoneUnreachable, openTransport } from '../../src/access/keystone/transport.ts';
import { selfSigned } from './certificate.ts';
import { completeSettings } from './keystones.ts';
import { settingsFor } from './stand_in.ts';

test('the next connection to Keystone is verified by the new file; where it is empty or gone, by the last one that was read', async () => {
  const [former, renewed] = [selfSigned(), selfSigned()];
  const cafile = path.join(os.tmpdir(), `authorities-${process.pid}.pem`);
  await writeFile(cafile, former.cert);
  const server = https.createServer(former, (_, answer) => answer.end('{}'));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const settings = completeSettings({ ...settingsFor({ url }), cafile });
  const transport = openTransport({
    url,
    tls: () => tlsOptions(settings),
    timeoutMs: 10_000,
    timeoutSource: 'the test',
    maxRetries: 0,
    maxConnections: 2,
    onAttempt: () => {},
  });
  const send = async () => {
    const { status } = await transport.send({ method: 'GET', path: '/', headers: {} }, performance.now() + 10_000);
    server.closeAllConnections();
    return status;
  };
  try {
    assert.equal(await send(), 200);
    server.setSecureContext(renewed);
    await assert.rejects(send(), KeystoneUnreachable);
    await writeFile(cafile, renewed.cert);
    assert.equal(await send(), 200);
    await writeFile(cafile, '');
    server.setSecureContext(renewed); // so that no session is resumed
    assert.equal(await send(), 200);
    await rm(cafile);
    assert.equal(await send(), 200);
  } finally {
    transport.close();
    server.close();
    await rm(cafile, { force: true });
  }
});
