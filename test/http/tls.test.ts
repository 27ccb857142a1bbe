/** HTTPS with [ssl] cert_file and key_file. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import https from 'node:https';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { selfSigned } from '../keystone/certificate.ts';
import { runToEnd, startCommand } from '../manage/commands.ts';
import { fillEmbedded } from '../support/templates.ts';
import { until } from '../support/until.ts';

type Answer = { readonly status: number | undefined; readonly location: string | undefined; readonly text: string };

const send = (url: string, ca: string, method: string, body = ''): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const headers = { 'x-auth-token': 'admin', 'content-type': 'application/json', 'content-length': body.length };
    https
      .request(url, { method, headers, ca }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part) => {
          text += part;
        });
        response.on('end', () => resolve({ status: response.statusCode, location: response.headers.location, text }));
      })
      .on('error', reject)
      .end(body);
  });

/** What /metrics says how long the certificate is valid. */
const leftSeconds = async (url: string, ca: string): Promise<number> =>
  Number(/^placement_tls_certificate_left_seconds (\S+)$/m.exec((await send(url, ca, 'GET')).text)?.[1]);

test('the certificate is served, links are https, SIGHUP reads the files again, and errors are reported', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-tls-'));
  const file = (name: string) => path.join(folder, name);
  try {
    const { cert, key } = selfSigned();
    await writeFile(file('cert.pem'), cert);
    await writeFile(file('key.pem'), key);
    await writeFile(file('other.pem'), selfSigned().key);
    await writeFile(file('empty.pem'), '');
    const configure = (certFile: string, keyFile: string) =>
      writeFile(
        file('placement.conf'),
        `[api]\nauth_strategy = noauth2\nport = 0\n[ssl]\ncert_file = ${file(certFile)}\nkey_file = ${file(keyFile)}\n` +
          `[placement_database]\nembedded_path = ${file('data')}\n`,
      );
    const args = ['--config-file', file('placement.conf')];

    await fillEmbedded(file('data'));
    await configure('cert.pem', 'key.pem');
    const server = startCommand('placement-api', args, folder);
    const [, url = ''] = await server.said(/listens on (https:\/\/127\.0\.0\.1:\d+)\n/);
    assert.equal((await send(`${url}/`, cert, 'GET')).status, 200);
    const uuid = '00000000-0000-4000-8000-000000000001';
    const created = await send(`${url}/resource_providers`, cert, 'POST', JSON.stringify({ name: 'one', uuid }));
    assert.deepEqual([created.status, created.location], [201, `${url}/resource_providers/${uuid}`]);
    await assert.rejects(send(`${url}/`, selfSigned().cert, 'GET'), { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });

    const logged = (pattern: RegExp) => until(`the log has ${pattern}`, () => pattern.test(server.log()));
    const renewed = selfSigned();
    await writeFile(file('cert.pem'), 'no certificate');
    server.child.kill('SIGHUP');
    await logged(/SIGHUP: the configuration was read again, .*, and the TLS certificate stays as it was\. Mistake: \S/);
    assert.equal((await send(`${url}/`, cert, 'GET')).status, 200);
    // As while another program writes them.
    for (const [name, text] of [
      ['cert.pem', cert],
      ['key.pem', key],
    ] as const) {
      await writeFile(file('cert.pem'), cert);
      await writeFile(file(name), '');
      const before = server.log().length;
      server.child.kill('SIGHUP');
      await until('the signal is logged', () => server.log().slice(before).includes('SIGHUP: '));
      const mistake =
        /and the TLS certificate stays as it was\. Mistake: The file of \[ssl\] (cert|key)_file cannot be read: \S+ is empty\./;
      assert.match(server.log().slice(before), mistake);
      assert.equal((await send(`${url}/`, cert, 'GET')).status, 200);
      await writeFile(file(name), text);
    }
    await writeFile(file('cert.pem'), renewed.cert);
    await writeFile(file('key.pem'), renewed.key);
    server.child.kill('SIGHUP');
    const isRenewed = () =>
      send(`${url}/`, renewed.cert, 'GET')
        .then(({ status }) => status === 200)
        .catch(() => false);
    await until('the new certificate is served', isRenewed);
    await logged(/SIGHUP: .*, and the TLS certificate was read again\."/);

    // Files of other names are taken, too; TLS is not switched off by a signal.
    const moved = selfSigned(30 * 86_400);
    assert.ok((await leftSeconds(`${url}/metrics`, renewed.cert)) <= 3600);
    await writeFile(file('moved-cert.pem'), moved.cert);
    await writeFile(file('moved-key.pem'), moved.key);
    await configure('moved-cert.pem', 'moved-key.pem');
    server.child.kill('SIGHUP');
    await logged(/the TLS certificate was read again\. Now in force: \[ssl\] cert_file, \[ssl\] key_file\."/);
    const isMoved = () =>
      send(`${url}/`, moved.cert, 'GET').then(
        ({ status }) => status === 200,
        () => false,
      );
    await until('the moved certificate is served', isMoved);
    assert.ok((await leftSeconds(`${url}/metrics`, moved.cert)) > 29 * 86_400);
    await writeFile(
      file('placement.conf'),
      (await readFile(file('placement.conf'), 'utf8')).replace(/^\[ssl\]\n.*\n.*\n/m, ''),
    );
    server.child.kill('SIGHUP');
    await logged(/Changed, and in force only after a restart: \[ssl\] cert_file, \[ssl\] key_file\."/);
    assert.ok(await isMoved());
    server.child.kill('SIGTERM');
    const { code: ended, stderr: whole } = await server.ended;
    assert.equal(ended, 0);
    const warnings = whole.match(
      /"The certificate of \[ssl\] cert_file ends at \S+Z: renew the file, and send SIGHUP\."/g,
    );
    assert.equal(warnings?.length, 2, 'the first two end within an hour, and the last one does not');

    for (const [certFile, keyFile, message] of [
      ['none.pem', 'key.pem', /^placement-api: The file of \[ssl\] cert_file cannot be read: ENOENT/],
      ['cert.pem', 'other.pem', /^placement-api: TLS cannot be set up by \[ssl\] cert_file = .*key_file = .*mismatch/],
      ['cert.pem', 'cert.pem', /^placement-api: TLS cannot be set up by \[ssl\]/],
      ['empty.pem', 'key.pem', /^placement-api: The file of \[ssl\] cert_file cannot be read: \S+empty\.pem is empty/],
      ['cert.pem', 'empty.pem', /^placement-api: The file of \[ssl\] key_file cannot be read: \S+empty\.pem is empty/],
    ] as const) {
      await configure(certFile, keyFile);
      const { code, stdout, stderr } = await runToEnd('placement-api', args, folder);
      assert.deepEqual([code, stdout], [78, '']);
      assert.match(stderr, message);
      assert.equal(stderr.trim().split('\n').length, 1);
    }
  } finally {
    await rm(folder, { recursive: true });
  }
});
