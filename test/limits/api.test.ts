/** The resources /limits and /default_limits: what they take, refuse and show. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { writeLimits } from '../../db/statements/limits.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const withSend = (use: (send: Send) => Promise<void>): Promise<void> =>
  withTestService(anyEngine, {}, (service) => use(requestsTo(service, 'placement 2.7')));

const detailOf = ({ json }: { readonly json: unknown }): string => String(at(json, 'errors', 0, 'detail'));

test('each field that is wrong is a 400 that names it and the value, and nothing is stored', async () => {
  await withSend(async (send) => {
    const wrong: readonly (readonly [body: unknown, detail: RegExp])[] = [
      [{}, /generation/],
      [{ generation: 'x' }, /generation.*x/],
      [{ generation: -1 }, /generation.*-1/],
      [{ generation: 2_147_483_648 }, /generation.*2147483648/],
      [{ generation: null, resources: [] }, /resources/],
      [{ generation: null, resources: { VCPU: -1 } }, /VCPU.*-1/],
      [{ generation: null, resources: { VCPU: 1.5 } }, /VCPU.*1\.5/],
      [{ generation: null, resources: { VCPU: 2_147_483_648 } }, /VCPU.*2147483648/],
      [{ generation: null, resources: { VCPU: '4' } }, /VCPU.*4/],
      [{ generation: null, resources: { vcpu: 4 } }, /vcpu/],
      [{ generation: null, resources: { CUSTOM_ABSENT: 4 } }, /CUSTOM_ABSENT/],
      [{ generation: null, resources: { VCPU: { limit: 'x' } } }, /VCPU.*limit.*x/],
      [{ generation: null, resources: { VCPU: { limit: 1, from: 'here' } } }, /from.*here/],
      [{ generation: null, resources: { VCPU: { limit: 1, of: 2 } } }, /of/],
      [{ generation: null, resources: { VCPU: { used: 1 } } }, /VCPU/],
      [{ generation: null, consumers: { 'a b': 1 } }, /a b/],
      [{ generation: null, consumers: { all: true } }, /all.*[Tt]rue/],
      [{ generation: null, project_id: 'other' }, /'project_id'.*'other'.*'ci'/],
      [{ generation: null, limits: {} }, /limits/],
      [[], /\[\]/],
    ];
    for (const [body, detail] of wrong) {
      const answer = await send('PUT', '/limits/ci', body);
      assert.equal(answer.status, 400, `${JSON.stringify(body)}: ${answer.text}`);
      assert.match(detailOf(answer), detail, JSON.stringify(body));
    }
    for (const [body, detail] of [
      [{ generation: null, resources: { VCPU: null } }, /VCPU.*None|VCPU.*null/],
      [{ generation: null, resources: { CUSTOM_ABSENT: 4 } }, /CUSTOM_ABSENT/],
      [{ generation: null, project_id: 'ci' }, /project_id/],
    ] as const) {
      const answer = await send('PUT', '/default_limits', body);
      assert.deepEqual([answer.status, detail.test(detailOf(answer))], [400, true], answer.text);
    }
    for (const query of ['?limit=0', '?limit=1001', '?limit=x', '?marker=a&marker=b', '?project=ci']) {
      assert.equal((await send('GET', `/limits${query}`)).status, 400, query);
    }
    assert.equal((await send('DELETE', '/limits/ci?generation=x')).status, 400);
    assert.equal((await send('GET', `/limits/${'a'.repeat(256)}`)).status, 400);
    const spoilt = await send('GET', '/limits/%00');
    assert.equal(spoilt.status, 400);
    assert.match(detailOf(spoilt), /^The path does not validate: project_id: /);
    assert.equal((await send('GET', '/limits/ci', undefined, 'placement 2.6')).status, 404);
    assert.deepEqual((await send('GET', '/limits')).json, { limits: [] });
    assert.deepEqual((await send('GET', '/default_limits')).json, { resources: {}, consumers: {}, generation: null });
  });
});

test('generations and entity tags guard what is written', async () => {
  await withSend(async (send) => {
    const put = (generation: number | null, limit = 1) =>
      send('PUT', '/limits/ci', { resources: { VCPU: limit }, generation });
    assert.equal((await put(1)).status, 409);
    const first = accepted(await put(null));
    assert.equal(at((await put(null)).json, 'errors', 0, 'code'), 'placement.concurrent_update');
    assert.equal(at(accepted(await put(1, 2)).json, 'generation'), 2);
    assert.equal((await send('DELETE', '/limits/ci?generation=1')).status, 409);
    assert.notEqual(first.headers.get('etag'), (await send('GET', '/limits/ci')).headers.get('etag'));
    accepted(await send('DELETE', '/limits/ci?generation=2'));
    assert.equal((await send('DELETE', '/limits/ci')).status, 404);
    // Limits that are stored again are none that a client has seen.
    assert.equal(at(accepted(await put(null)).json, 'generation'), 3);
    assert.equal((await put(1)).status, 409);
    assert.equal((await send('DELETE', '/limits/ci?generation=2')).status, 409);
    accepted(await send('DELETE', '/limits/ci?generation=3'));
    assert.equal((await send('DELETE', '/default_limits')).status, 404);
    accepted(await send('PUT', '/default_limits', { consumers: { all: 5 }, generation: null }));
    assert.equal((await send('PUT', '/default_limits', { consumers: { all: 5 }, generation: null })).status, 409);
    accepted(await send('DELETE', '/default_limits?generation=1'));
  });
});

test('projects are listed in pages, in the order of their names; a name may have a slash, an end of a line, and any letters', async () => {
  await withSend(async (send) => {
    const names = ['a', 'b/c', 'B', 'ü', '00000000-0000-4000-8000-000000000001', 'd e?#%', 'f\ng'];
    for (const name of names) {
      const path = `/limits/${encodeURIComponent(name)}`;
      const set = accepted(await send('PUT', path, { resources: { VCPU: 3 }, generation: null }));
      assert.equal(at(set.json, 'project_id'), name);
      assert.deepEqual((await send('GET', path)).json, set.json);
    }
    const listed: unknown[] = [];
    let path = '/limits?limit=4';
    for (;;) {
      const { json } = accepted(await send('GET', path));
      listed.push(...(at(json, 'limits') as readonly { readonly project_id: string }[]).map((each) => each.project_id));
      const next = at(json, 'limits_links', 0, 'href');
      if (typeof next !== 'string') break;
      path = next;
    }
    assert.deepEqual(listed, ['00000000-0000-4000-8000-000000000001', 'B', 'a', 'b/c', 'd e?#%', 'f\ng', 'ü']);
    accepted(await send('DELETE', '/limits/b%2Fc'));
    assert.equal(at((await send('GET', '/limits/b%2Fc')).json, 'generation'), null);
  });
});

test('limits of a path that ends with a slash are not set for a project that does not exist, and removed where they are stored', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.7');
    for (const path of ['/limits/a/', '/limits/a%2F']) {
      const refused = await send('PUT', path, { resources: { VCPU: 1 }, generation: null });
      assert.equal(refused.status, 400);
      assert.match(refused.text, /'project_id': 'a\/' ends with a slash/);
      assert.equal((await send('GET', path)).status, 400);
      assert.equal((await send('DELETE', path)).status, 404);
    }
    assert.deepEqual((await send('GET', '/limits')).json, { limits: [] });
    await sql`insert into limits (project, generation, resources, consumers, updated_at) values ('a/', 1, '{"VCPU": 1}', '{}', now())`.execute(
      service.database.kysely,
    );
    accepted(await send('DELETE', '/limits/a%2F'));
    assert.deepEqual((await send('GET', '/limits')).json, { limits: [] });
  });
});

test('/metrics has the limits of projects with values of their own, and the usages of these projects', async () => {
  await withSend(async (send) => {
    const host = '00000000-0000-4000-8000-00000000000a';
    await makeProvider(send, host, { VCPU: { total: 8 } });
    const listed = async () =>
      (await send('GET', '/metrics')).text.split('\n').filter((line) => line.startsWith('placement_limit'));
    assert.deepEqual(await listed(), []);
    accepted(
      await send('PUT', '/limits/p', { resources: { VCPU: 3, PGPU: null }, consumers: { all: 9 }, generation: null }),
    );
    accepted(await send('PUT', '/allocations/00000000-0000-4000-8000-000000000001', newClaim({ [host]: { VCPU: 2 } })));
    assert.deepEqual(await listed(), [
      'placement_limit{project="p",of="VCPU"} 3',
      'placement_limit{project="p",of="consumers all"} 9',
      'placement_limit_used{project="p",of="VCPU"} 2',
      'placement_limit_used{project="p",of="consumers all"} 1',
    ]);
  });
});

test('an import replaces nothing but what an import has stored, also where the generation is the same', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const { database } = service;
    const send = requestsTo(service, 'placement 2.7');
    accepted(await send('PUT', '/limits/ci', { generation: null, resources: { VCPU: 4 } }));
    const imported = { project: 'ci', resources: { VCPU: 1 }, consumers: {}, known: 1, isImported: true };
    assert.equal(await writeLimits(database, imported), undefined);
    assert.equal(at((await send('GET', '/limits/ci')).json, 'resources', 'VCPU', 'limit'), 4);
  });
});

test('usages in doubt are recounted by each read, however often another program puts them in doubt', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.7');
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await send('PUT', '/limits/p', { generation: null, resources: { VCPU: 4 }, consumers: { all: 3 } }));
    accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 2 } })));
    const used = async () => {
      const { json } = await send('GET', '/limits/p');
      return [at(json, 'resources', 'VCPU', 'used'), at(json, 'consumers', 'all', 'used')];
    };
    assert.deepEqual(await used(), [2, 1]);
    for (const doubt of [
      sql`insert into doubtful_usages values (null)`,
      sql`insert into doubtful_usages select id from projects`,
    ]) {
      await sql`delete from doubtful_usages`.execute(service.database.kysely);
      await sql`delete from project_usages`.execute(service.database.kysely);
      assert.deepEqual(await used(), [0, 0]);
      await doubt.execute(service.database.kysely);
      assert.deepEqual(await used(), [2, 1]);
      assert.match((await send('GET', '/metrics')).text, /placement_limit_used\{project="p",of="VCPU"\} 2\n/);
    }
  });
});
