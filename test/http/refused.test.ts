/** What is refused before the app gets it has one line in the log, with the id of its answer, and is counted by its reason. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { suite, test } from 'node:test';
import tls from 'node:tls';
import { selfSigned } from '../keystone/certificate.ts';
import { startCommand, withCommands } from '../manage/commands.ts';
import { until } from '../support/until.ts';

/** A conversation that is refused: what is sent, and with which status it is answered. */
type Refused = {
  readonly reason: string;
  readonly said: string | Buffer;
  readonly status: number;
  readonly url?: string;
};

const host = 'Host: localhost\r\n';
const refusedByHttp: readonly Refused[] = [
  { reason: 'malformed', said: 'HELLO\r\n\r\n', status: 400 },
  { reason: 'malformed', said: `GET /traits HTTP/1.1\r\n${host}Content-Length: x\r\n\r\n`, status: 400 },
  {
    reason: 'head too long',
    said: `GET /traits HTTP/1.1\r\n${host}X-Long: ${'a'.repeat(200_000)}\r\n\r\n`,
    status: 431,
  },
  { reason: 'host missing', said: 'GET /traits HTTP/1.1\r\n\r\n', status: 400, url: '/traits' },
  {
    reason: 'several hosts',
    said: `GET /traits?name=in:A HTTP/1.1\r\n${host}${host}\r\n`,
    status: 400,
    url: '/traits?name=in:A',
  },
  { reason: 'host or target invalid', said: 'GET /traits HTTP/1.0\r\nHost: a b<\r\n\r\n', status: 400, url: '/traits' },
  { reason: 'host or target invalid', said: `GET /a\\traits HTTP/1.0\r\n${host}\r\n`, status: 400, url: '/a\\traits' },
  { reason: 'tunnel', said: `CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`, status: 400, url: 'example.com:443' },
  {
    reason: 'unknown expectation',
    said: `GET /traits HTTP/1.1\r\n${host}Expect: more\r\n\r\n`,
    status: 417,
    url: '/traits',
  },
];
const late: Refused = { reason: 'late', said: 'GET /tra', status: 408 };
const refusedOnPlainHttp: readonly Refused[] = [
  {
    reason: 'other host',
    said: 'GET /traits HTTP/1.0\r\nHost: rebound.example.com\r\n\r\n',
    status: 421,
    url: '/traits',
  },
  { reason: 'TLS on plain HTTP', said: Buffer.from('16030100a5010000a10303', 'hex'), status: 400 },
];
const body = '{"name": "a"}';
const refusedBelowTls: readonly Refused[] = [
  { reason: 'plain HTTP', said: `GET /traits HTTP/1.1\r\n${host}\r\n`, status: 400 },
  { reason: 'plain HTTP', said: 'OPTIONS / HTTP/1.0\r\n\r\n', status: 400 },
  { reason: 'plain HTTP', said: `DELETE /traits/A HTTP/1.1\r\n${host}\r\n`, status: 400 },
  {
    reason: 'plain HTTP',
    said: `POST /resource_providers HTTP/1.1\r\n${host}Content-Length: 1000000\r\n\r\n${body.padEnd(1_000_000)}`,
    status: 400,
  },
];

for (const { secure, workers } of [
  { secure: false, workers: 1 },
  { secure: true, workers: 1 },
  { secure: true, workers: 2 },
]) {
  suite(`${secure ? 'HTTPS' : 'plain HTTP'} with ${workers === 1 ? 'one process' : 'two workers'}`, () => {
    test('each refusal is logged and counted once', () =>
      withServer({ secure, workers }, async (server) => {
        const cases = [...refusedByHttp, ...(secure ? [] : refusedOnPlainHttp)];
        for (const each of cases) await server.refuses(each, secure);
        if (secure) for (const each of refusedBelowTls) await server.refuses(each, false);
        const expected = new Map<string, number>();
        for (const { reason } of [...cases, ...(secure ? refusedBelowTls : [])]) {
          expected.set(reason, (expected.get(reason) ?? 0) + 1);
        }
        assert.deepEqual(await server.counts(), expected);
      }));

    // Alone: on a busy machine other requests may be late as well.
    test('a request that does not come in time is logged and counted once', () =>
      withServer({ secure, workers, clientTimeout: 1 }, async (server) => {
        await server.refuses(late, secure);
        assert.deepEqual(await server.counts(), new Map([['late', 1]]));
      }));

    if (secure) {
      test('a handshake that fails is logged and counted, and a client that only connects is not', () =>
        withServer({ secure, workers }, async (server) => {
          await ended(net.connect(server.port, '127.0.0.1').end());
          await ended(net.connect(server.port, '127.0.0.1').end('no TLS\r\n\r\n'));
          const old = { maxVersion: 'TLSv1.1', minVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const;
          await ended(tls.connect({ port: server.port, host: '127.0.0.1', rejectUnauthorized: false, ...old }));
          await until('both are in the log', () => server.refusals().length === 2);
          for (const { reason, detail, cause, client } of server.refusals()) {
            assert.deepEqual([reason, client], ['TLS handshake', '127.0.0.1']);
            assert.match(`${detail} ${cause}`, /^No TLS connection could be made: [\w ]+ ERR_SSL_\w+$/);
          }
          assert.deepEqual(await server.counts(), new Map([['TLS handshake', 2]]));
        }));
    }
  });
}

type Logged = Readonly<Record<string, unknown>>;

async function withServer(
  {
    secure,
    workers,
    clientTimeout,
  }: { readonly secure: boolean; readonly workers: number; readonly clientTimeout?: number },
  use: (server: Awaited<ReturnType<typeof start>>) => Promise<void>,
): Promise<void> {
  const settings = `${clientTimeout === undefined ? '' : `client_timeout = ${clientTimeout}\n`}workers = ${workers}\n`;
  await withCommands(
    workers === 1 ? 'embedded' : 'postgresql',
    'migrated',
    async (world) => {
      const { cert, key } = selfSigned();
      const file = (name: string) => path.join(world.folder, name);
      await writeFile(file('cert.pem'), cert);
      await writeFile(file('key.pem'), key);
      const configs = ['--config-file', world.configFile, '--config-file', file('ssl.conf')];
      await writeFile(
        file('ssl.conf'),
        secure ? `[ssl]\ncert_file = ${file('cert.pem')}\nkey_file = ${file('key.pem')}\n` : '',
      );
      const server = await start(configs, world.folder);
      try {
        await use(server);
      } finally {
        await server.end();
      }
    },
    settings,
  );
}

async function start(args: readonly string[], folder: string) {
  const { child, ended: end, log, said } = startCommand('placement-api', args, folder);
  const [, url = ''] = await said(/listens on (http\S+)\n/);
  const port = Number(new URL(url).port);
  const logged = (): readonly Logged[] =>
    log()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  const refusals = (): readonly Logged[] => logged().filter(({ msg }) => msg === 'refused');
  return {
    port,
    refusals,
    /** Checks the answer to a conversation, and that its id is on one line of the log. */
    refuses: async ({ reason, said: text, status, url: target }: Refused, secure: boolean): Promise<void> => {
      const where = { port, host: '127.0.0.1', allowHalfOpen: true };
      const client = secure ? tls.connect({ ...where, rejectUnauthorized: false }) : net.connect(where);
      client.write(text);
      const answer = await ended(client);
      assert.match(answer, new RegExp(`^HTTP/1.1 ${status} `), reason);
      const id = /^x-openstack-request-id: (\S+)\r$/im.exec(answer)?.[1];
      assert.ok(id, answer);
      assert.ok(answer.includes(`"request_id":"${id}"`), answer);
      const lines = () => logged().filter(({ requestId }) => requestId === id);
      await until(`the log has ${id}`, () => lines().length > 0);
      const [line, more] = lines();
      assert.equal(more, undefined);
      const { client: from, ...said } = line ?? {};
      assert.deepEqual([from, said.status, said.url], ['127.0.0.1', status, target]);
      // The app knows the hosts that it serves, and logs its answer as others.
      if (reason === 'other host') return;
      assert.deepEqual([said.msg, said.reason], ['refused', reason]);
      assert.match(
        answer,
        new RegExp(
          `"detail":"[^"]*${String(said.detail)
            .slice(0, 20)
            .replace(/[[\\(]/g, '.')}`,
        ),
      );
    },
    /** The refusals that were counted, by their reason. */
    counts: async (): Promise<ReadonlyMap<string, number>> => {
      const output = url.startsWith('https')
        ? await new Promise<string>((resolve, reject) => {
            https
              .get(`${url}/metrics`, { rejectUnauthorized: false }, (response) => resolve(text(response)))
              .on('error', reject);
          })
        : await (await fetch(`${url}/metrics`)).text();
      const sums = new Map<string, number>();
      for (const [, reason = '', count] of output.matchAll(
        /^placement_refused_requests_total\{reason="([^"]+)".*\} (\d+)$/gm,
      )) {
        if (count !== '0') sums.set(reason, (sums.get(reason) ?? 0) + Number(count));
      }
      return sums;
    },
    end: async (): Promise<void> => {
      child.kill('SIGTERM');
      await end;
    },
  };
}

/** Reads a connection until it ends. @returns what came */
const ended = (client: net.Socket): Promise<string> =>
  new Promise((resolve) => {
    let received = '';
    client.setEncoding('latin1').on('data', (data) => {
      received += data;
    });
    client.once('end', () => client.end()).on('error', () => {});
    client.once('close', () => resolve(received));
  });
