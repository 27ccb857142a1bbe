/** The health checks of a real HAProxy, in its forms: by every one the service is up. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { listen } from '../../src/http/server/listen.ts';
import { selfSigned } from '../keystone/certificate.ts';
import { anyEngine } from '../support/engines.ts';
import { freePort } from '../support/free_port.ts';
import { hasHaproxy, startHaproxy } from '../support/haproxy.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

/** The lines of a backend that say how it is checked, and the options of its server. */
type Check = { readonly lines: readonly string[]; readonly server?: string };

const byHttp: readonly Check[] = [
  { lines: ['option httpchk'] },
  { lines: ['option httpchk GET /'] },
  { lines: ['option httpchk HEAD /'] },
  { lines: ['option httpchk OPTIONS / HTTP/1.0'] },
  { lines: ['option httpchk', 'http-check send-state'] },
  { lines: ['option httpchk /healthcheck'] },
  { lines: ['option httpchk GET /healthcheck'] },
  { lines: ['option httpchk HEAD /readyz'] },
  { lines: ['option httpchk', 'http-check send meth GET uri / ver HTTP/1.1 hdr Host localhost'] },
  { lines: ['option httpchk', 'http-check send meth HEAD uri / ver HTTP/1.1 hdr Host localhost:'] },
  { lines: ['option httpchk', 'http-check send meth OPTIONS uri / ver HTTP/1.1 hdr Host localhost'] },
  { lines: ['option httpchk', 'http-check send meth OPTIONS uri * ver HTTP/1.1 hdr Host localhost'] },
  { lines: ['option httpchk', 'http-check send meth GET uri / hdr User-Agent check hdr Accept */*'] },
  { lines: ['option httpchk GET /', 'http-check expect rstring max_version'] },
  { lines: ['option tcp-check', 'tcp-check send GET\\ /\\ HTTP/1.0\\r\\n\\r\\n', 'tcp-check expect rstring 200\\ OK'] },
];
const byTcp: readonly Check[] = [{ lines: [] }, { lines: ['option tcp-check'] }];
const byTls: readonly Check[] = [
  { lines: ['option ssl-hello-chk'] },
  ...[...byHttp, ...byTcp].map((check) => ({ ...check, server: 'check-ssl verify none' })),
];
const ofMetrics: readonly Check[] = [
  { lines: ['option httpchk GET /metrics'] },
  { lines: ['option httpchk HEAD /metrics'] },
  { lines: ['option httpchk /metrics'] },
  ...byTcp,
];

test('every health check of HAProxy finds the service up, and requests come through it', async (t) => {
  if (!hasHaproxy()) {
    t.skip('haproxy is not installed');
    return;
  }
  const metrics = { enabled: true, host: '127.0.0.1', port: await freePort() };
  await withTestService(anyEngine, { metrics }, async ({ app, metricsApp }) => {
    assert.ok(metricsApp);
    const to = { host: '127.0.0.1', port: 0, drainMs: 100 };
    const servers = await Promise.all([
      listen(app, to),
      listen(app, { ...to, tls: selfSigned() }),
      listen(metricsApp, { ...to, port: metrics.port }),
    ]);
    const [plain, secure] = servers.map(({ url }) => new URL(url).host);
    const proxy = await startProxy([
      ...byHttp.concat(byTcp).map((check) => [check, plain] as const),
      ...byTls.map((check) => [check, secure] as const),
      ...ofMetrics.map((check) => [{ ...check, server: `port ${metrics.port}` }, plain] as const),
      // A server that does not exist, which shows that HAProxy distinguishes the two.
      [{ lines: ['option httpchk'] }, '127.0.0.1:1'],
    ]);
    try {
      let states: readonly State[] = [];
      const down = () => states.slice(0, -1).filter(({ status }) => status !== 'UP');
      const untilUp = until('each check finds the service up', async () => {
        states = await proxy.states();
        // On a busy machine a check may take too long once.
        const haveEnded = states.every(({ check }) => !['', 'INI'].includes(check));
        return haveEnded && down().length === 0 && states.at(-1)?.status === 'DOWN';
      });
      await untilUp.catch(() => {}); // what was found says more
      assert.deepEqual([down(), states.at(-1)?.status], [[], 'DOWN']);
      const answer = await fetch(`${proxy.url}/resource_providers`, { headers: { 'x-auth-token': 'admin' } });
      assert.deepEqual([answer.status, await answer.text()], [200, '{"resource_providers":[]}']);
    } finally {
      await proxy.stop();
      await Promise.all(servers.map(({ close }) => close()));
    }
  });
});

/** What HAProxy finds out about the server of a backend, and by which check. */
type State = { readonly lines: string; readonly status: string; readonly check: string; readonly seen: string };

/** Starts HAProxy with a backend for each check. Requests go to the first one. */
async function startProxy(checks: readonly (readonly [Check, string | undefined])[]) {
  const [port, statesPort] = [await freePort(), await freePort()];
  const backends = checks.map(([{ lines, server = '' }, address], index) =>
    [`backend check${index}`, ...lines, `server one ${address} check inter 500ms fall 1 rise 1 ${server}`].join('\n  '),
  );
  const config = `defaults
  mode http
  timeout connect 5s
  timeout client 10s
  timeout server 10s
  timeout check 5s
frontend requests
  bind 127.0.0.1:${port}
  default_backend check0
frontend states
  bind 127.0.0.1:${statesPort}
  stats enable
  stats uri /
${backends.join('\n')}
`;
  const states = async (): Promise<readonly State[]> => {
    const table = await (await fetch(`http://127.0.0.1:${statesPort}/;csv`)).text();
    const [names = [], ...rows] = table
      .trim()
      .split('\n')
      .map((line) => line.split(','));
    const column = (name: string): number => names.indexOf(name);
    return rows
      .filter((row) => row[column('svname')] === 'one')
      .map((row) => ({
        lines: checks[Number(row[0]?.replace('check', ''))]?.[0].lines.join('; ') ?? '',
        status: row[column('status')] ?? '',
        check: row[column('check_status')]?.replace('* ', '') ?? '',
        seen: row[column('last_chk')] ?? '',
      }));
  };
  const { stop } = await startHaproxy(config, states);
  return { url: `http://127.0.0.1:${port}`, states, stop };
}
