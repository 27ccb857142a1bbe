import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { anyEngine, engines } from '../support/engines.ts';
import { accepted, at, newClaim } from '../support/requests.ts';
import { errorOf, placed, providersOf, withHosts } from './placed.ts';

for (const engine of engines) {
  test(`a gang is placed as a whole, and the answer has each consumer as GET shows it, on ${engine}`, async () => {
    await withHosts(engine, 2, async (send, [host = '']) => {
      const [old, plain, first, second] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
      accepted(await send('PUT', `/allocations/${old}`, newClaim({ [host]: { VCPU: 8 } })));
      // Only if what the old one has is free first, and the plain one is placed before the queries, do all find their place.
      const answer = await send('POST', '/allocations', {
        [first]: placed('resources=VCPU:6'),
        [second]: placed('resources=VCPU:5'),
        [plain]: newClaim({ [host]: { VCPU: 3 } }),
        [old]: { ...newClaim({}), consumer_generation: 1 },
      });
      assert.equal(accepted(answer).status, 200);
      for (const uuid of [first, second, plain, old]) {
        const { json } = await send('GET', `/allocations/${uuid}`);
        const { mappings, ...shown } = Object(at(answer.json, uuid));
        assert.deepEqual(shown, json);
        const isByQuery = uuid === first || uuid === second;
        assert.deepEqual(mappings, isByQuery ? { '': providersOf(json) } : undefined);
      }
      assert.deepEqual(at(answer.json, old), { allocations: {} });
      assert.deepEqual(providersOf(at(answer.json, second)), [host]);
    });
  });

  test(`a gang of which one does not fit leaves nothing behind, on ${engine}`, async () => {
    await withHosts(engine, 2, async (send, hosts) => {
      const uuids = Array.from({ length: 5 }, () => randomUUID());
      const gang = Object.fromEntries(uuids.map((uuid) => [uuid, placed('resources=VCPU:4')]));
      const refused = await send('POST', '/allocations', gang);
      assert.equal(refused.status, 409);
      assert.equal(errorOf(refused).code, 'placement.no_candidates');
      assert.match(errorOf(refused).detail, new RegExp(`consumer ${uuids[4]}: no tree meets resources=VCPU:4`));
      for (const uuid of uuids) assert.deepEqual((await send('GET', `/allocations/${uuid}`)).json, { allocations: {} });
      for (const host of hosts) {
        const { json } = await send('GET', `/resource_providers/${host}/usages`);
        assert.deepEqual(at(json, 'usages'), { VCPU: 0, MEMORY_MB: 0 });
      }
      assert.deepEqual(at((await send('GET', '/consumers')).json, 'consumers'), []);
    });
  });

  test(`the refusal of a gang that is sent again names the consumer that exists, on ${engine}`, async () => {
    await withHosts(engine, 2, async (send) => {
      const [old, fresh] = [randomUUID(), randomUUID()];
      const one = placed('resources=VCPU:1');
      accepted(await send('PUT', `/allocations/${old}`, one));
      const gang = { [fresh]: placed('resources=VCPU:1'), [old]: one };
      const { code, detail } = errorOf(await send('POST', '/allocations', gang));
      assert.equal(code, 'placement.concurrent_update');
      assert.match(detail, new RegExp(`expected 1 but got null; it is that of consumer ${old}\\. Read it again, `));
      const openstack = { [old]: newClaim({}) };
      const refused = errorOf(await send('POST', '/allocations', openstack, 'placement 1.39'));
      assert.match(refused.detail, /expected 1 but got None\s*$/);
    });
  });

  test(`a consumer is placed after the consumers that its with names, and a circle is refused, on ${engine}`, async () => {
    await withHosts(engine, 8, async (send) => {
      const [follower, leader, apart] = [randomUUID(), randomUUID(), randomUUID()];
      const gang = {
        [follower]: placed(`resources=VCPU:1&with=${leader}`),
        [apart]: placed(`resources=VCPU:1&apart_from=${leader},${follower}`),
        [leader]: placed('resources=VCPU:1'),
      };
      const { json } = accepted(await send('POST', '/allocations', gang));
      const of = (uuid: string) => providersOf(at(json, uuid));
      assert.deepEqual(of(follower), of(leader));
      assert.notDeepEqual(of(apart), of(leader));
      const [one, other] = [randomUUID(), randomUUID()];
      const circle = await send('POST', '/allocations', {
        [one]: placed(`resources=VCPU:1&with=${other}`),
        [other]: placed(`resources=VCPU:1&with=${one}`),
      });
      assert.equal(circle.status, 400);
      for (const uuid of [one, other]) assert.ok(errorOf(circle).detail.includes(uuid));
      assert.match(errorOf(circle).detail, /'with'/);
    });
  });

  test(`members of a gang that are apart each get a tree, whichever of them says so, on ${engine}`, async () => {
    await withHosts(engine, 4, async (send) => {
      const uuids = Array.from({ length: 4 }, () => randomUUID());
      // Each names only those that are placed after it.
      const queryOf = (index: number): string => {
        const later = uuids.slice(index + 1);
        return later.length === 0 ? 'resources=VCPU:1' : `resources=VCPU:1&apart_from=${later.join(',')}`;
      };
      const gang = Object.fromEntries(uuids.map((uuid, index) => [uuid, placed(queryOf(index))]));
      const { json } = accepted(await send('POST', '/allocations', gang));
      assert.equal(new Set(uuids.flatMap((uuid) => providersOf(at(json, uuid)))).size, 4);
      const fifth = randomUUID();
      const inCapitals = uuids.map((uuid) => uuid.replaceAll('-', '').toUpperCase());
      for (const others of [uuids.join(','), inCapitals.join(',')]) {
        const refused = await send('PUT', `/allocations/${fifth}`, placed(`resources=VCPU:1&apart_from=${others}`));
        assert.equal(refused.status, 409);
        assert.ok(errorOf(refused).detail.includes(`consumer ${fifth}: no tree meets apart_from=${others}`));
      }
    });
  });

  test(`a consumer stays in its tree or leaves it, as its own query says, on ${engine}`, async () => {
    await withHosts(engine, 3, async (send) => {
      const consumer = randomUUID();
      const put = async (query: string, generation: number | null) =>
        providersOf(accepted(await send('PUT', `/allocations/${consumer}`, placed(query, generation))).json);
      const [first] = await put('resources=VCPU:6', null);
      assert.deepEqual(await put(`resources=VCPU:7&with=${consumer}`, 1), [first]);
      const [second] = await put(`resources=VCPU:7&apart_from=${consumer}`, 2);
      assert.notEqual(second, first);
      const nowhere = await send('PUT', `/allocations/${consumer}`, placed(`resources=VCPU:1&with=${randomUUID()}`, 3));
      assert.match(errorOf(nowhere).detail, /no tree meets with=/);
    });
  });
}

/** A UUID in other spellings, of which POST takes the first two as keys. */
const spelled = (uuid: string) => [uuid.toUpperCase(), uuid, uuid.replaceAll('-', ''), `{${uuid}}`] as const;

test('a consumer is the same one by POST and by PUT, in any spelling of its UUID, and so it is found and released', () =>
  withHosts(anyEngine, 2, async (send) => {
    // With a condition it is read before it is deleted.
    for (const more of [{}, { 'if-match': '*' }]) {
      const [one, other] = [randomUUID().replace(/^./, 'a'), randomUUID().replace(/^./, 'b')];
      const [loudOne, loudOther] = [one.toUpperCase(), other.toUpperCase()];
      const gang = {
        [loudOne]: placed('resources=VCPU:1'),
        [loudOther]: placed(`resources=VCPU:1&apart_from=${loudOne}`),
      };
      const answer = accepted(await send('POST', '/allocations', gang));
      assert.deepEqual(Object.keys(Object(answer.json)), [loudOne, loudOther], 'by the keys of the request');
      assert.notDeepEqual(providersOf(at(answer.json, loudOne)), providersOf(at(answer.json, loudOther)));
      for (const spelling of spelled(one)) {
        const { code } = errorOf(await send('PUT', `/allocations/${spelling}`, placed('resources=VCPU:1')));
        assert.equal(code, 'placement.concurrent_update', spelling);
        const shown = await send('GET', `/allocations/${spelling}`, undefined, undefined, more);
        assert.deepEqual(providersOf(shown.json), providersOf(at(answer.json, loudOne)), spelling);
      }
      const twice = await send('POST', '/allocations', {
        [one]: placed('resources=VCPU:1', 1),
        [loudOne]: placed('resources=VCPU:1', 1),
      });
      assert.equal(twice.status, 400);
      assert.ok(errorOf(twice).detail.includes(`consumer ${one} twice, as '${one}' and as '${loudOne}'`));
      assert.equal((await send('DELETE', `/allocations/${loudOne}`, undefined, undefined, more)).status, 204);
      assert.equal((await send('DELETE', `/allocations/${loudOne}`, undefined, undefined, more)).status, 404);
      accepted(await send('DELETE', `/allocations/{${other}}`, undefined, undefined, more));
    }
  }));
