/** Tokens of the service's own: how they are made, used, noted, ended and revoked. */
import assert from 'node:assert/strict';
import { suite, test } from 'node:test';
import { sql } from 'kysely';
import { pino } from 'pino';
import { openOwnTokens } from '../../src/access/tokens/own_tokens.ts';
import { isToken, makeToken } from '../../src/access/tokens/token_text.ts';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { anyEngine, engines, freshDatabase } from '../support/engines.ts';
import { databaseUrl, execute } from '../support/postgresql.ts';
import { at, listAt } from '../support/requests.ts';
import { openServiceOn, testConfig, withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const byTokens = { api: { authStrategy: 'tokens' } } as const;
const version = { 'openstack-api-version': 'placement 2.7', 'content-type': 'application/json' };

type Wanted = { readonly roles?: readonly string[]; readonly expires_in?: number };

/** Makes a token as the owner of the process does. */
async function make(
  service: PlacementService,
  wanted: Wanted = {},
): Promise<{ readonly id: string; readonly token: string }> {
  const body = JSON.stringify({ user_id: 'ada', project_id: 'ci', roles: ['admin'], ...wanted });
  const answer = await service.operatorApp().request('/tokens', { method: 'POST', headers: version, body });
  assert.equal(answer.status, 201, await answer.clone().text());
  const json = await answer.json();
  return { id: String(at(json, 'id')), token: String(at(json, 'token')) };
}

type Listed = { readonly tokens: readonly { readonly id: string; readonly used_at: string | null }[] };

/** The body of an answer to GET /tokens. */
const listOf = async (answer: Response): Promise<Listed> => (await answer.json()) as Listed;

const get = (service: PlacementService, headers: Readonly<Record<string, string>>, path = '/tokens') =>
  service.app.request(path, { headers: { ...version, ...headers } });

const statusOf = async (service: PlacementService, token: string): Promise<number> =>
  (await get(service, { authorization: `Bearer ${token}` })).status;

/** The hour in which a token was used last; null if it never was. */
async function usedAt(service: PlacementService, id: string): Promise<string | null> {
  const listed = await listOf(await service.operatorApp().request('/tokens', { headers: version }));
  return listed.tokens.find((token) => token.id === id)?.used_at ?? null;
}

/** Waits until a token that was just revoked is refused. No request that is sent five seconds later is accepted; on a busy machine one takes long. */
async function untilRefused(service: PlacementService, token: string): Promise<void> {
  const revokedMs = performance.now();
  let acceptedMs = revokedMs;
  await until('the revoked token is refused', async () => {
    const sentMs = performance.now();
    const status = await statusOf(service, token);
    if (status === 200) acceptedMs = sentMs;
    return status === 401;
  });
  assert.ok(acceptedMs - revokedMs < 5_000, `${acceptedMs - revokedMs}`);
}

test('a token has 256 random bits and a checksum, by which one changed letter is found', () => {
  const { text, hash, prefix } = makeToken();
  assert.match(text, /^plc_[\w-]{49}$/);
  assert.match(hash, /^[0-9a-f]{64}$/);
  assert.ok(text.startsWith(prefix) && prefix.length === 10);
  assert.ok(isToken(text));
  for (let index = 0; index < text.length; index += 1) {
    const other = text[index] === 'A' ? 'B' : 'A';
    assert.ok(!isToken(text.slice(0, index) + other + text.slice(index + 1)), `letter ${index}`);
  }
  for (const wrong of ['', 'plc_', text.slice(0, -1), `${text}A`, text.slice(4)]) assert.ok(!isToken(wrong), wrong);
});

test('a token whose row need not be read again yet is refused from its end on', (t) =>
  withTestService(anyEngine, byTokens, async (service) => {
    const { token } = await make(service, { expires_in: 3600 });
    const judge = openOwnTokens(service.database);
    const [readMs, madeMs] = [performance.now(), Date.now()];
    assert.ok('identity' in (await judge(token)));
    for (const [seconds, isTaken] of [
      [3_000, true],
      [4_000, false],
    ] as const) {
      const mocks = [
        t.mock.method(performance, 'now', () => readMs),
        t.mock.method(Date, 'now', () => madeMs + 1000 * seconds),
      ];
      const verdict = judge(token);
      for (const { mock } of mocks) mock.restore();
      assert.equal('identity' in verdict, isTaken, `after ${seconds} s`);
      assert.equal('refused' in verdict, !isTaken, `after ${seconds} s, without a query`);
    }
  }));

for (const engine of engines) {
  suite(`on ${engine}`, () => {
    test('a new token removes tokens that expired more than 30 days ago', async () => {
      await withTestService(engine, byTokens, async (service) => {
        const [never, lately, longAgo] = [await make(service), await make(service), await make(service)];
        const end = (id: string, ago: string) =>
          sql`update tokens set expires_at = now() at time zone 'UTC' - ${ago}::interval where uuid = ${id}`.execute(
            service.database.kysely,
          );
        await end(lately.id, '29 days');
        await end(longAgo.id, '31 days');
        const { id, token } = await make(service);
        const { tokens } = await listOf(await get(service, { authorization: `Bearer ${token}` }));
        assert.deepEqual(tokens.map((each) => each.id).toSorted(), [never.id, lately.id, id].toSorted());
      });
    });

    test('a token is taken in either header, and its user, project and roles count', async () => {
      await withTestService(engine, byTokens, async (service) => {
        const { token } = await make(service);
        for (const headers of [
          { authorization: `Bearer ${token}` },
          { authorization: `bearer  ${token}` },
          { 'x-auth-token': token },
          { authorization: `Bearer ${token}`, 'x-auth-token': token },
        ]) {
          assert.equal((await get(service, headers)).status, 200, JSON.stringify(Object.keys(headers)));
        }
        const reader = await make(service, { roles: ['reader'] });
        assert.equal(await statusOf(service, reader.token), 403);
        const two = await get(service, { authorization: `Bearer ${token}`, 'x-auth-token': reader.token });
        assert.equal(two.status, 400);
        const [error] = listAt(await two.json(), 'errors');
        assert.match(String(at(error, 'detail')), /^The headers Authorization and X-Auth-Token have different tokens/);
        assert.equal(at(error, 'code'), 'placement.undefined_code');
        assert.equal(two.headers.get('openstack-api-version'), 'placement 2.7');
        const usages = (project: string) =>
          get(service, { authorization: `Bearer ${reader.token}` }, `/usages?project_id=${project}`);
        assert.equal((await usages('ci')).status, 200);
        assert.equal((await usages('other')).status, 403);
        // What a client says of itself has no effect.
        const claimed = {
          'x-auth-token': reader.token,
          'x-roles': 'admin',
          'x-project-id': 'other',
          'x-user-id': 'admin',
        };
        assert.equal((await get(service, claimed)).status, 403);
      });
    });

    test('a list shows tokens without their texts, page by page, with the hour of the last use', async () => {
      await withTestService(engine, byTokens, async (service) => {
        const made = [await make(service), await make(service, { roles: ['reader', 'member'], expires_in: 60 })];
        const headers = { 'x-auth-token': made[0]?.token ?? '' };
        const isNoted = async () => {
          const { tokens } = await listOf(await get(service, headers));
          return tokens.some(({ used_at }) => used_at?.endsWith(':00:00.000Z'));
        };
        await until('the use is noted', isNoted);
        const text = await (await get(service, headers)).text();
        for (const { id, token } of made) {
          assert.ok(text.includes(id) && text.includes(token.slice(0, 10)));
          assert.ok(!text.includes(token.slice(0, 14)));
        }
        const first = await listOf(await get(service, headers, '/tokens?limit=1&project_id=ci&user_id=ada'));
        assert.equal(first.tokens.length, 1);
        const next = await listOf(await get(service, headers, String(at(first, 'tokens_links', 0, 'href'))));
        assert.equal(next.tokens.length, 1);
        assert.equal(at(next, 'tokens_links'), undefined);
        assert.deepEqual(
          [...first.tokens, ...next.tokens].map(({ id }) => id),
          made.map(({ id }) => id).toSorted(),
        );
        assert.deepEqual(await listOf(await get(service, headers, '/tokens?project_id=other')), { tokens: [] });
      });
    });

    test('a token that has expired, was revoked or never existed is a 401 that does not say which', async () => {
      await withTestService(engine, byTokens, async (service) => {
        const [revoked, admin] = [await make(service), await make(service)];
        // On a busy machine its second may be over before it is used: then another one is made.
        let brief = await make(service, { expires_in: 1 });
        await until('a brief token is accepted', async () => {
          if ((await statusOf(service, brief.token)) === 200) return true;
          brief = await make(service, { expires_in: 1 });
          return false;
        });
        assert.equal(await statusOf(service, revoked.token), 200);
        const removal = { method: 'DELETE', headers: { ...version, 'x-auth-token': admin.token } };
        assert.equal((await service.app.request(`/tokens/${revoked.id}`, removal)).status, 204);
        for (const id of [revoked.id, 'x', 'a%00']) {
          assert.equal((await service.app.request(`/tokens/${id}`, removal)).status, 404, id);
        }
        await untilRefused(service, revoked.token);
        await until('the brief token has ended', async () => (await statusOf(service, brief.token)) === 401);
        const answers = new Set<string>();
        for (const token of [brief.token, revoked.token, makeToken().text, 'plc_short', 'some.other.token', 'text']) {
          const answer = await get(service, { 'x-auth-token': token });
          assert.equal(answer.status, 401);
          assert.equal(answer.headers.get('www-authenticate'), 'Bearer error="invalid_token"');
          const [error] = listAt(await answer.json(), 'errors');
          assert.equal(at(error, 'status'), 401);
          answers.add(String(at(error, 'detail')));
        }
        assert.deepEqual([...answers], ['The token is not valid: it is unknown, was revoked, or has ended.']);
        const none = await get(service, {});
        assert.equal(none.status, 401);
        assert.equal(none.headers.get('www-authenticate'), 'Bearer');
        const both = await get(service, { 'x-auth-token': admin.token, authorization: `Bearer ${revoked.token}` });
        assert.equal(both.status, 400);
        assert.ok(!(await both.text()).includes('plc_'));
        assert.equal((await service.app.request('/')).status, 200); // needs none
      });
    });
  });
}

test('wrong fields of a new token are named', async () => {
  await withTestService(anyEngine, byTokens, async (service) => {
    const right = { user_id: 'u', project_id: 'p', roles: ['member'] };
    for (const [field, value] of [
      ['user_id', undefined],
      ['user_id', ''],
      ['project_id', 'x'.repeat(256)],
      ['project_id', 5],
      ['roles', undefined],
      ['roles', []],
      ['roles', 'admin'],
      ['roles', ['']],
      ['roles', ['a', 'a']],
      ['roles', ['mem ber']],
      ['roles', ['member,admin']],
      ['roles', Array.from({ length: 101 }, (_, number) => `role-${number}`)],
      ['expires_in', 0],
      ['expires_in', 1.5],
      ['expires_in', '5'],
      ['expires_in', 315_360_001],
      ['expires', 5],
    ] as const) {
      const body = JSON.stringify({ ...right, [field]: value });
      const answer = await service.operatorApp().request('/tokens', { method: 'POST', headers: version, body });
      const text = await answer.text();
      assert.equal(answer.status, 400, body);
      assert.ok(text.includes(field), text);
    }
    const listed = await service.operatorApp().request('/tokens', { headers: version });
    assert.deepEqual(await listOf(listed), { tokens: [] });
    const older = { ...version, 'openstack-api-version': 'placement 2.6' };
    assert.equal((await service.operatorApp().request('/tokens', { headers: older })).status, 404);
  });
});

test('neither the log nor the database has a token, and the log says why one was refused', async () => {
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(line) });
  const database = await freshDatabase(anyEngine);
  const service = await openService(testConfig({ ...byTokens, placementDatabase: database.config }), { logger });
  try {
    const { token } = await make(service);
    const unknown = makeToken().text;
    for (const each of [token, unknown, `${token}x`, 'a.b.c']) await statusOf(service, each);
    const log = lines.join('');
    for (const each of [token, unknown]) assert.ok(!log.includes(each.slice(4, 40)));
    for (const reason of ['unknown', 'checksum', '[jwt:NAME]']) assert.ok(log.includes(reason), reason);
    const { rows } = await sql<{ row: string }>`select tokens::text as row from tokens`.execute(
      service.database.kysely,
    );
    assert.equal(rows.length, 1);
    assert.ok(!JSON.stringify(rows).includes(token.slice(4, 20)));
  } finally {
    await service.close();
    await database.drop();
  }
});

test('a token that one process revokes is refused by another process within 5 s, and its stream of changes ends', async () => {
  const database = await freshDatabase(anyEngine);
  const [one, other] = [await openServiceOn(database, byTokens), await openServiceOn(database, byTokens)];
  try {
    const { id, token } = await make(one);
    const changes = await get(other, { 'x-auth-token': token, accept: 'text/event-stream' }, '/changes');
    assert.equal(changes.status, 200);
    const ended = changes.text();
    await one.operatorApp().request(`/tokens/${id}`, { method: 'DELETE', headers: version });
    const revokedMs = performance.now();
    await until('the token is refused', async () => (await statusOf(other, token)) === 401);
    assert.match(await ended, /event: error\ndata: \{"status":401/);
    assert.ok(performance.now() - revokedMs < 5_000, `${performance.now() - revokedMs}`);
  } finally {
    await Promise.all([one.close(), other.close()]);
    await database.drop();
  }
});

test('a request whose body ends after its token was revoked is refused', async () => {
  await withTestService(anyEngine, byTokens, async (service) => {
    for (const [method, path, text] of [
      ['POST', '/resource_providers', '{"name": "late"}'],
      ['DELETE', '/resource_classes/CUSTOM_THERE', ''],
    ] as const) {
      const [{ id, token }, lasting] = [await make(service), await make(service)];
      const headersOf = (of: string) => ({ ...version, 'x-auth-token': of });
      const there = { method: 'PUT', headers: headersOf(lasting.token) };
      assert.ok((await service.app.request('/resource_classes/CUSTOM_THERE', there)).ok);
      const { readable, writable } = new TransformStream<Uint8Array>();
      const writer = writable.getWriter();
      const headers = { ...headersOf(token), 'transfer-encoding': 'chunked' };
      const sent = { method, headers, body: readable, duplex: 'half' } as const;
      const answer = Promise.resolve(service.app.request(path, sent));
      await until('the request is there', async () => (await usedAt(service, id)) !== null);
      await service.operatorApp().request(`/tokens/${id}`, { method: 'DELETE', headers: version });
      await untilRefused(service, token);
      const written = text === '' ? undefined : writer.write(new TextEncoder().encode(text));
      await Promise.all([written, writer.close()]);
      assert.equal((await answer).status, 401, `${method} ${path}`);
      const get = { headers: headersOf(lasting.token) };
      assert.equal((await service.app.request('/resource_classes/CUSTOM_THERE', get)).status, 200);
      const providers = await (await service.app.request('/resource_providers', get)).json();
      assert.deepEqual(listAt(providers, 'resource_providers'), []);
    }
  });
});

test('a token expires by the clock of the database, whatever the clock of the process is', async (t) => {
  await withTestService('postgresql', byTokens, async (service) => {
    const { now } = Date;
    for (const hours of [2, -2]) {
      t.mock.method(Date, 'now', () => now() + hours * 3_600_000);
      const [lasting, ending] = [await make(service, { expires_in: 3600 }), await make(service, { expires_in: 10 })];
      const states = () => Promise.all([lasting, ending].map(({ token }) => statusOf(service, token)));
      assert.deepEqual(await states(), [200, 200]);
      assert.deepEqual(await states(), [200, 200], 'what was read of them is remembered');
      const headers = { authorization: `Bearer ${lasting.token}` };
      const { next } = (await (await get(service, headers, '/changes')).json()) as { readonly next: string };
      const startedMs = performance.now();
      await get(service, { ...headers, prefer: 'wait=1' }, `/changes?since=${encodeURIComponent(next)}`);
      assert.ok(performance.now() - startedMs > 900, 'a client that follows is not cut off');
      await until('one has ended', async () => (await statusOf(service, ending.token)) === 401);
      assert.equal(await statusOf(service, lasting.token), 200);
    }
  });
});

test('while the database is unavailable a known token is accepted for a short time, and then the answer is 503, also in a stream', async () => {
  const database = await freshDatabase('postgresql');
  const { connection = '' } = database.config;
  const name = new URL(connection).pathname.slice(1);
  const onServer = (statement: string) => execute(databaseUrl(connection, 'postgres'), statement);
  const service = await openServiceOn(database, byTokens);
  try {
    const { token } = await make(service);
    assert.equal(await statusOf(service, token), 200);
    const stream = await get(service, { 'x-auth-token': token, accept: 'text/event-stream' }, '/changes');
    await onServer(`alter database ${name} allow_connections false`);
    await onServer(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`);
    const answers = new Set<number>();
    const aboutNothing = () => get(service, { 'x-auth-token': token }, '/no_such_path');
    await until('the token is no longer taken', async () => {
      const { status } = await aboutNothing();
      answers.add(status);
      return status !== 404;
    });
    const [error] = listAt(await (await aboutNothing()).json(), 'errors');
    assert.equal(at(error, 'code'), 'placement.undefined_code');
    assert.deepEqual([...answers], [404, 503]);
    assert.match(await stream.text(), /event: error\ndata: \{"status":503,"code":"placement.undefined_code"\}/);
  } finally {
    await onServer(`alter database ${name} allow_connections true`);
    await service.close();
    await database.drop();
  }
});

test('an unexpected error in the check of a token ends a stream with 500, and is logged', async () => {
  const lines: string[] = [];
  const logger = pino({ level: 'error' }, { write: (line: string) => void lines.push(line) });
  const database = await freshDatabase(anyEngine);
  const service = await openServiceOn(database, byTokens, { logger });
  try {
    const { token } = await make(service);
    const stream = await get(service, { 'x-auth-token': token, accept: 'text/event-stream' }, '/changes');
    await sql`alter table tokens alter column roles type integer using 1`.execute(service.database.kysely);
    assert.match(await stream.text(), /event: error\ndata: \{"status":500,"code":"placement.undefined_code"\}/);
    assert.match(lines.join(''), /"msg":"Unexpected error"/);
  } finally {
    await service.close();
    await database.drop();
  }
});
