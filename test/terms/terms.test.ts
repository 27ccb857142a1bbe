/** Claims that expire: what a claim, a renewal, a rewrite and the end of a term do. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { engines } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const version = 'placement 2.6';
const owner = { project_id: 'p', user_id: 'u' };

/**
 * The end of the term of a consumer, in milliseconds since 1970; null for a lasting consumer, undefined without a
 * consumer.
 */
async function endOf(send: Send, consumer: string): Promise<number | null | undefined> {
  const end = at((await send('GET', `/allocations/${consumer}`)).json, 'expires_at');
  return typeof end === 'string' ? Date.parse(end) : (end as null | undefined); // as the API has it
}

const isGone = async (send: Send, consumer: string): Promise<boolean> => (await endOf(send, consumer)) === undefined;

const usedOf = async (send: Send, host: string): Promise<unknown> =>
  at((await send('GET', `/resource_providers/${host}/usages`)).json, 'usages', 'VCPU');

for (const engine of engines) {
  test(`each kind of claim may have a term, and a consumer is removed when it expires, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, version);
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 8 } });
      const one = newClaim({ [host]: { VCPU: 1 } });
      const { allocations: _, ...whose } = one;
      const byQuery = { ...whose, candidates: 'resources=VCPU:1' };
      const [plain, posted, lasting, placed, placedLong] = Array.from({ length: 5 }, () => randomUUID());
      const before = Date.now();
      accepted(await send('PUT', `/allocations/${plain}`, { ...one, expires_in: 100 }));
      const answer = accepted(await send('PUT', `/allocations/${placedLong}`, { ...byQuery, expires_in: 300 }));
      const several = { [`${posted}`]: { ...one, expires_in: 200 }, [`${placed}`]: { ...byQuery, expires_in: 1 } };
      const posting = accepted(await send('POST', '/allocations', { ...several, [`${lasting}`]: one }));
      assert.equal(at(posting.json, `${lasting}`, 'expires_at'), null);
      assert.equal(
        at(answer.json, 'expires_at'),
        at((await send('GET', `/consumers/${placedLong}`)).json, 'expires_at'),
      );
      for (const [consumer, seconds] of [
        [plain, 100],
        [posted, 200],
        [placedLong, 300],
      ] as const) {
        const end = (await endOf(send, `${consumer}`)) ?? 0;
        assert.ok(end >= before + seconds * 1000 - 1 && end <= Date.now() + seconds * 1000 + 1, `${seconds} s`);
      }
      assert.equal(await endOf(send, `${lasting}`), null);
      const older = await send('GET', `/allocations/${plain}`, undefined, 'placement 2.5');
      assert.equal('expires_at' in Object(older.json), false);
      const token = at((await send('GET', '/changes')).json, 'next');

      await until('the short term is over', () => isGone(send, `${placed}`));
      assert.equal(await usedOf(send, host), 4);
      assert.equal((await send('GET', `/consumers/${placed}`)).status, 404);
      assert.equal((await send('DELETE', `/allocations/${placed}`)).status, 404);
      const changes = await send('GET', `/changes?since=${token}`);
      assert.deepEqual(at(changes.json, 'changes'), [{ resource_provider: host, parts: ['usages'] }]);
      const listed = await send('GET', '/consumers?expiring_before=2999-01-01T00:00:00Z');
      assert.deepEqual(
        (at(listed.json, 'consumers') as { readonly uuid: string }[]).map(({ uuid }) => uuid), // as openapi.yaml says
        [plain, posted, placedLong].toSorted(),
      );
    });
  });

  test(`a rewrite removes the term of a consumer; a change of its owner and the reshaper keep it, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, version);
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 100 } });
      const allocations = { [host]: { resources: { VCPU: 1 } } };
      const seconds = 3;
      const claimed = async (): Promise<string> => {
        const consumer = randomUUID();
        const body = { ...newClaim({ [host]: { VCPU: 1 } }), expires_in: seconds };
        accepted(await send('PUT', `/allocations/${consumer}`, body));
        return consumer;
      };
      const typed = { ...owner, allocations, consumer_generation: 1, consumer_type: 'INSTANCE' };
      const lasting = {
        'at 1.0': async (uuid: string) => {
          const list = [{ resource_provider: { uuid: host }, resources: { VCPU: 1 } }];
          return send('PUT', `/allocations/${uuid}`, { allocations: list }, 'placement 1.0');
        },
        'at 1.28': (uuid: string) =>
          send('PUT', `/allocations/${uuid}`, { ...owner, allocations, consumer_generation: 1 }, 'placement 1.28'),
        'at 2.5 by POST': (uuid: string) => send('POST', '/allocations', { [uuid]: typed }, 'placement 2.5'),
        'at 2.6': (uuid: string) => send('PUT', `/allocations/${uuid}`, { ...typed, expires_at: null }),
        'null as its term': (uuid: string) =>
          send('PUT', `/consumers/${uuid}/term`, { expires_in: null, consumer_generation: 1 }),
        'a change of its owner after a rewrite': async (uuid: string) => {
          accepted(await send('PUT', `/allocations/${uuid}`, typed));
          const { allocations: _, ...change } = { ...typed, consumer_generation: 2 };
          return send('PUT', `/consumers/${uuid}`, { ...change, project_id: 'q' });
        },
      };
      const ending = {
        'a change of its owner': async (uuid: string) => {
          const { allocations: _, ...change } = { ...typed, project_id: 'q' };
          const end = await endOf(send, uuid);
          const changed = await send('PUT', `/consumers/${uuid}`, change);
          assert.equal(Date.parse(String(at(changed.json, 'expires_at'))), end);
          return changed;
        },
        'a change of its owner at 2.2': (uuid: string) =>
          send(
            'PUT',
            `/consumers/${uuid}`,
            { ...owner, consumer_type: 'JOB', consumer_generation: 1 },
            'placement 2.2',
          ),
        'the reshaper': async (uuid: string) => {
          const shown = (await send('GET', `/resource_providers/${host}/inventories`)).json;
          const { resource_provider_generation, inventories } = Object(shown);
          return send('POST', '/reshaper', {
            inventories: { [host]: { resource_provider_generation, inventories } },
            allocations: { [uuid]: typed },
          });
        },
        'a rewrite with a term': (uuid: string) =>
          send('PUT', `/allocations/${uuid}`, { ...typed, expires_in: seconds }),
        'a renewal': (uuid: string) =>
          send('PUT', `/consumers/${uuid}/term`, { expires_in: seconds, consumer_generation: 1 }),
        'a second change of its owner': async (uuid: string) => {
          const { allocations: _, ...change } = typed;
          accepted(await send('PUT', `/consumers/${uuid}`, change));
          return send('PUT', `/consumers/${uuid}`, { ...change, consumer_generation: 2 });
        },
      };
      const uuids = new Map<string, string>();
      for (const [what, write] of Object.entries({ ...lasting, ...ending })) {
        const uuid = await claimed();
        uuids.set(what, uuid);
        const written = await write(uuid);
        assert.ok(written.status < 300, `${what}: ${written.text}`);
        const end = await endOf(send, uuid);
        assert.equal(end === null, what in lasting, `${what}: ${end}`);
      }
      // This consumer is claimed last: when it is removed, all other consumers with a term are removed too.
      const last = await claimed();
      await until('all terms are over', () => isGone(send, last));
      for (const [what, uuid] of uuids) assert.equal(await isGone(send, uuid), what in ending, what);
      assert.equal(await usedOf(send, host), Object.keys(lasting).length);
    });
  });

  test(`a dry run answers with the end of the term and sets no term, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, version);
      const [host, consumer] = [randomUUID(), randomUUID()];
      await makeProvider(send, host, { VCPU: { total: 8 } });
      const { allocations: _, ...whose } = newClaim({});
      const body = { ...whose, candidates: 'resources=VCPU:1', expires_in: 60, dry_run: true };
      const before = Date.now();
      const end = Date.parse(
        String(at(accepted(await send('PUT', `/allocations/${consumer}`, body)).json, 'expires_at')),
      );
      assert.ok(end >= before + 60_000 - 1 && end <= Date.now() + 60_001, new Date(end).toISOString());
      assert.equal((await send('GET', `/consumers/${consumer}`)).status, 404);
    });
  });
}
