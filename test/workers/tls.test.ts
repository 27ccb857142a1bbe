/**
 * HTTPS with workers: every worker has the certificate, also one that a SIGHUP renewed, and also a worker that starts
 * later.
 */
import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import tls from 'node:tls';
import { selfSigned } from '../keystone/certificate.ts';
import { startCommand, withCommands } from '../manage/commands.ts';
import { until } from '../support/until.ts';

/**
 * The fingerprints of the certificates of new connections. Both of two workers have answered some of the connections.
 */
async function certificates(port: number): Promise<readonly string[]> {
  const sockets = Array.from({ length: 4 }, () => tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false }));
  await Promise.all(sockets.map((socket) => once(socket, 'secureConnect')));
  const served = sockets.map((socket) => socket.getPeerCertificate().fingerprint256);
  for (const socket of sockets) socket.destroy();
  return [...new Set(served)];
}

const fingerprintOf = (certificate: string): string => new X509Certificate(certificate).fingerprint256;

test('every worker serves the certificate that SIGHUP renewed, or the old one if the new one is broken', async () => {
  await withCommands('postgresql', 'migrated', async ({ folder, configFile }) => {
    const [certFile, keyFile] = [path.join(folder, 'cert.pem'), path.join(folder, 'key.pem')];
    const install = async ({ cert, key }: { readonly cert: string; readonly key: string }) => {
      await writeFile(certFile, cert);
      await writeFile(keyFile, key);
    };
    const [first, second] = [selfSigned(), selfSigned()];
    await install(first);
    const args = ['--config-file', configFile, '--workers', '2'];
    const server = startCommand('placement-api', args, folder, {
      OS_SSL__CERT_FILE: certFile,
      OS_SSL__KEY_FILE: keyFile,
    });
    const [, digits] = await server.said(/listens on https:\/\/127\.0\.0\.1:(\d+)\n/);
    const port = Number(digits);
    assert.deepEqual(await certificates(port), [fingerprintOf(first.cert)]);

    await install({ ...second, cert: 'no certificate' });
    server.child.kill('SIGHUP');
    await until('the mistake is told', () => server.log().includes('the TLS certificate stays as it was'));
    assert.deepEqual(await certificates(port), [fingerprintOf(first.cert)]);

    await install(second);
    server.child.kill('SIGHUP');
    await until('the certificate is renewed', () => server.log().includes('the TLS certificate was read again'));
    await until('both serve it', async () =>
      (await certificates(port)).every((fingerprint) => fingerprint === fingerprintOf(second.cert)),
    );

    // The files are broken again. A worker that starts now serves with the good certificate.
    await writeFile(certFile, 'no certificate');
    const serving = () => [...server.log().matchAll(/"pid":(\d+),"msg":"This worker serves"/g)];
    await until('both workers have logged that they serve', () => serving().length === 2);
    process.kill(Number(serving()[0]?.[1]), 'SIGKILL');
    await until('its successor serves', () => serving().length === 3);
    assert.deepEqual(await certificates(port), [fingerprintOf(second.cert)]);
    server.child.kill('SIGTERM');
    assert.equal((await server.ended).code, 0);
  });
});
