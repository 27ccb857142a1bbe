/** Names of consumers: which writes give, keep and remove one, and which answers show it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const version = 'placement 2.9';

const nameOf = async (send: Send, consumer: string): Promise<unknown> =>
  at((await send('GET', `/allocations/${consumer}`)).json, 'name');

const uuidsOf = (json: unknown): readonly string[] =>
  (at(json, 'consumers') as { readonly uuid: string }[]).map(({ uuid }) => uuid); // as openapi-2.yaml says

/** A claim that rewrites a consumer as it is, without its name. */
async function rewriteOf(send: Send, consumer: string): Promise<Record<string, unknown>> {
  const {
    name: _,
    etag: _tag,
    expires_at: _end,
    ...claim
  } = Object(accepted(await send('GET', `/allocations/${consumer}`)).json);
  return claim;
}

test('each kind of claim may set a name, and each answer with the consumer shows it', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, version);
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 100 } });
    const one = newClaim({ [host]: { VCPU: 1 } });
    const { allocations: _, ...whose } = one;
    const byQuery = { ...whose, candidates: 'resources=VCPU:1' };
    const [plain, posted, placed, placedToo, without] = Array.from({ length: 5 }, () => randomUUID()) as [
      string,
      string,
      string,
      string,
      string,
    ]; // of this length
    accepted(await send('PUT', `/allocations/${plain}`, { ...one, name: 'plain "1"' }));
    const answer = accepted(await send('PUT', `/allocations/${placed}`, { ...byQuery, name: 'träin-7' }));
    assert.equal(at(answer.json, 'name'), 'träin-7');
    const several = { [posted]: { ...one, name: 'same' }, [placedToo]: { ...byQuery, name: 'same' }, [without]: one };
    const posting = accepted(await send('POST', '/allocations', several));
    assert.deepEqual(
      [posted, placedToo, without].map((uuid) => at(posting.json, uuid, 'name')),
      ['same', 'same', null],
    );
    const tried = accepted(
      await send('PUT', `/allocations/${randomUUID()}`, { ...byQuery, name: 'tried', dry_run: true }),
    );
    assert.equal(at(tried.json, 'name'), 'tried');

    const names = new Map([
      [plain, 'plain "1"'],
      [placed, 'träin-7'],
      [posted, 'same'],
      [placedToo, 'same'],
      [without, null],
    ]);
    const onHost = (await send('GET', `/resource_providers/${host}/allocations`)).json;
    const listed = at((await send('GET', '/consumers')).json, 'consumers') as { uuid: string; name: string | null }[]; // as openapi-2.yaml says
    assert.deepEqual(new Map(listed.map(({ uuid, name }) => [uuid, name])), new Map([...names].toSorted()));
    for (const [uuid, name] of names) {
      assert.equal(await nameOf(send, uuid), name);
      assert.equal(at(onHost, 'allocations', uuid, 'name'), name);
      assert.equal(at((await send('GET', `/consumers/${uuid}`)).json, 'name'), name);
      for (const path of [`/allocations/${uuid}`, `/consumers/${uuid}`]) {
        const older = await send('GET', path, undefined, 'placement 2.8');
        assert.equal('name' in Object(older.json), false);
      }
    }
    const older = (await send('GET', `/resource_providers/${host}/allocations`, undefined, 'placement 2.8')).json;
    assert.equal('name' in Object(at(older, 'allocations', plain)), false);
    const known = accepted(
      await send('PUT', `/allocations/${placed}`, {
        ...(await rewriteOf(send, placed)),
        allocations: undefined,
        candidates: 'resources=VCPU:2',
      }),
    );
    assert.equal(at(known.json, 'name'), 'träin-7');

    assert.deepEqual(uuidsOf((await send('GET', '/consumers?name=same')).json), [posted, placedToo].toSorted());
    const firstPage = (await send('GET', '/consumers?name=same&limit=1')).json;
    const [first] = uuidsOf(firstPage);
    assert.match(String(at(firstPage, 'consumers_links', 0, 'href')), /name=same/);
    assert.equal(uuidsOf((await send('GET', `/consumers?name=same&limit=1&marker=${first}`)).json).length, 1);
    const alsoOf = async (query: string) => uuidsOf((await send('GET', `/consumers?name=same&${query}`)).json);
    assert.equal((await alsoOf(`resource_provider=${host}&project_id=${one.project_id}`)).length, 2);
    assert.deepEqual(await alsoOf('project_id=other'), []);
    assert.deepEqual(await alsoOf('expiring_before=2999-01-01T00:00:00Z'), []);
    assert.deepEqual(uuidsOf((await send('GET', '/consumers?name=SAME')).json), []);
  });
});

test('consumers and holdings are found by a part of the name, whatever its characters', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, version);
    const [host, other] = [randomUUID(), randomUUID()];
    await makeProvider(send, host, { VCPU: { total: 100 }, MEMORY_MB: { total: 100 } });
    await makeProvider(send, other, { VCPU: { total: 100 } });
    const names = ['Train-7', 'train-17', '100%_\\é', 'TRÄIN', 'job', undefined];
    const uuidOf = new Map(names.map((name) => [name, randomUUID()]));
    for (const [index, name] of names.entries()) {
      const takes = index === 1 ? { [other]: { VCPU: 1 } } : { [host]: { VCPU: 1, MEMORY_MB: 1 } };
      const claim = { ...newClaim(takes), project_id: index < 2 ? 'ml' : 'web', name };
      accepted(await send('PUT', `/allocations/${uuidOf.get(name)}`, claim));
    }
    const found = async (part: string, more = '') => {
      const query = `name_contains=${encodeURIComponent(part)}${more}`;
      const listed = at(accepted(await send('GET', `/consumers?${query}`)).json, 'consumers');
      const held = at(accepted(await send('GET', `/holdings?${query.replace(/&name=.*/, '')}`)).json, 'holdings');
      const consumers = (listed as { name: string }[]).map(({ name }) => name).toSorted(); // as openapi-2.yaml says
      if (!more.includes('&name=')) {
        assert.deepEqual((held as { name: string }[]).map(({ name }) => name).toSorted(), consumers); // each holds something of one host
      }
      return consumers;
    };
    assert.deepEqual(await found('train'), ['Train-7', 'train-17']);
    assert.deepEqual(await found('RAIN-1'), ['train-17']);
    assert.deepEqual(await found('7'), ['Train-7', 'train-17']);
    for (const each of ['%', '_', '\\', '0%_', 'é']) assert.deepEqual(await found(each), ['100%_\\é'], each);
    assert.deepEqual(await found('Ä'), ['TRÄIN']);
    assert.deepEqual(await found('ä'), []);
    assert.deepEqual(await found('%r%'), []);
    assert.deepEqual(await found('train', '&project_id=ml'), ['Train-7', 'train-17']);
    assert.deepEqual(await found('train', '&project_id=web'), []);
    assert.deepEqual(await found('train', `&resource_provider=${other}`), ['train-17']);
    assert.deepEqual(await found('7', `&in_tree=${host}`), ['Train-7']);
    assert.deepEqual(await found('train', '&consumer_type=INSTANCE'), ['Train-7', 'train-17']);
    assert.deepEqual(await found('train', '&name=train-17'), ['train-17']);
    const ofClass = at((await send('GET', '/holdings?name_contains=train&resource_class=MEMORY_MB')).json, 'holdings');
    assert.deepEqual(at(ofClass, 'length'), 1);
    const ofProject = '/holdings?name_contains=train&project_id=ml&resource_class=VCPU';
    assert.deepEqual(at((await send('GET', ofProject)).json, 'holdings', 'length'), 2);

    const page = (await send('GET', '/consumers?name_contains=train&limit=1')).json;
    assert.match(String(at(page, 'consumers_links', 0, 'href')), /name_contains=train/);
    const next = await send('GET', `/consumers?name_contains=train&limit=1&marker=${uuidsOf(page)[0]}`);
    assert.equal(uuidsOf(next.json).length, 1);
    assert.equal('consumers_links' in Object(next.json), false);

    for (const path of ['/consumers', '/holdings']) {
      for (const value of ['', 'a'.repeat(256), 'a%01b', 'a%0Ab', 'x&name_contains=y']) {
        const refused = await send('GET', `${path}?name_contains=${value}`);
        assert.equal(refused.status, 400, value);
        assert.match(refused.text, /name_contains/);
      }
    }
    assert.equal((await send('GET', '/consumers?name_contains=a', undefined, 'placement 2.8')).status, 400);
  });
});

test('a name stays until a write replaces or removes it, or the consumer is deleted', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, version);
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 100 } });
    const consumer = randomUUID();
    const path = `/allocations/${consumer}`;
    const claim = newClaim({ [host]: { VCPU: 1 } });
    accepted(await send('PUT', path, { ...claim, name: 'a' }));

    accepted(await send('PUT', path, await rewriteOf(send, consumer)));
    assert.equal(await nameOf(send, consumer), 'a');
    const { consumer_generation: generation } = Object((await send('GET', path, undefined, 'placement 1.38')).json);
    accepted(await send('PUT', path, { ...claim, consumer_generation: generation }, 'placement 1.38'));
    assert.equal(await nameOf(send, consumer), 'a');
    const read = Object((await send('GET', path)).json);
    accepted(await send('PUT', path, read)); // what GET shows may be sent back
    accepted(await send('PUT', path, { ...(await rewriteOf(send, consumer)), name: 'b' }));
    assert.equal(await nameOf(send, consumer), 'b');
    accepted(await send('PUT', path, { ...(await rewriteOf(send, consumer)), name: null }));
    assert.equal(await nameOf(send, consumer), null);

    const change = async (more: object) => {
      const shown = Object((await send('GET', `/consumers/${consumer}`)).json);
      return Object(accepted(await send('PUT', `/consumers/${consumer}`, { ...shown, ...more })).json);
    };
    assert.equal((await change({ name: 'c' })).name, 'c');
    assert.equal((await change({ name: undefined, user_id: 'v' })).name, 'c');
    assert.equal(await nameOf(send, consumer), 'c');
    assert.equal((await change({ name: null })).name, null);
    assert.equal(await nameOf(send, consumer), null);
    assert.equal((await change({ name: 'd' })).name, 'd');

    const { resource_provider_generation: known, inventories } = Object(
      (await send('GET', `/resource_providers/${host}/inventories`)).json,
    );
    const { expires_at: _, etag: _tag, ...moved } = Object((await send('GET', path)).json);
    const reshape = (name: string | undefined, resource_provider_generation: number, consumer_generation: number) =>
      send('POST', '/reshaper', {
        inventories: { [host]: { resource_provider_generation, inventories } },
        allocations: { [consumer]: { ...moved, name, consumer_generation } },
      });
    accepted(await reshape(undefined, known, moved.consumer_generation));
    assert.equal(await nameOf(send, consumer), 'd');
    const again = Object((await send('GET', `/resource_providers/${host}`)).json);
    accepted(await reshape('e', again.generation, moved.consumer_generation + 1));
    assert.equal(await nameOf(send, consumer), 'e');

    accepted(await send('DELETE', path));
    const goesOn = Object((await send('GET', path)).json);
    assert.deepEqual(goesOn, { allocations: {} });
    accepted(await send('PUT', path, claim));
    assert.equal(await nameOf(send, consumer), null);
    accepted(await send('PUT', path, { ...(await rewriteOf(send, consumer)), name: 'f' }));
    accepted(await send('PUT', path, { ...(await rewriteOf(send, consumer)), allocations: {}, name: 'g' }));
    const { rows } = await service.database.unlimited.connection().execute((connection) =>
      connection
        .selectFrom('consumer_names')
        .selectAll()
        .execute()
        .then((all) => ({ rows: all })),
    );
    assert.deepEqual(rows, []);
  });
});

test('an invalid name is refused with the field and the text, and nothing is written', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, version);
    const host = randomUUID();
    await makeProvider(send, host, { VCPU: { total: 100 } });
    const consumer = randomUUID();
    const claim = newClaim({ [host]: { VCPU: 1 } });
    const wrong = [
      '',
      'x'.repeat(256),
      'a\nb',
      'a\u0000b',
      'a\u001bb',
      'a\u0085b',
      '\u202eb',
      'a\u2066',
      'a\u2028b',
      '\ud800',
      7,
      ['a'],
      {},
    ];
    for (const name of wrong) {
      const answers = [
        await send('PUT', `/allocations/${consumer}`, { ...claim, name }),
        await send('POST', '/allocations', { [consumer]: { ...claim, name } }),
      ];
      for (const { status, json } of answers) {
        assert.equal(status, 400, JSON.stringify(name));
        assert.match(String(at(json, 'errors', 0, 'detail')), /name/);
      }
    }
    assert.equal((await send('GET', `/consumers?name=${encodeURIComponent('a\nb')}`)).status, 400);
    assert.equal((await send('GET', '/consumers?name=')).status, 400);
    assert.equal((await send('GET', '/consumers?name=a&name=b')).status, 400);
    assert.equal((await send('GET', '/consumers?name=a', undefined, 'placement 2.8')).status, 400);
    assert.equal((await send('PUT', `/allocations/${consumer}`, { ...claim, name: 'a' }, 'placement 2.8')).status, 400);
    assert.deepEqual(uuidsOf((await send('GET', '/consumers')).json), []);
    accepted(await send('PUT', `/allocations/${consumer}`, { ...claim, name: '\u{1f600}'.repeat(255) }));
    assert.equal(await nameOf(send, consumer), '\u{1f600}'.repeat(255));
  });
});
