/**
 * A consumer that is made again under the UUID of a removed one is another one. From 2.1 on a client that
 * knows only the generation of the removed consumer cannot write the new consumer. Below 2.1 it is as in OpenStack Placement.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine } from '../support/engines.ts';
import {
  type Answer,
  accepted,
  at,
  makeProvider,
  newClaim,
  newestVersion,
  requestsTo,
  type Send,
} from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const host = '00000000-0000-4000-8000-0000000000aa';

type World = { readonly service: PlacementService; readonly send: Send };

/** A service with one host, and requests at a version. */
const withHost = (use: (world: World) => Promise<void>): Promise<void> =>
  withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, `placement ${newestVersion}`);
    await makeProvider(send, host, { VCPU: { total: 1000 } });
    await use({ service, send });
  });

const claim = newClaim({ [host]: { VCPU: 1 } });
const { consumer_type: _, ...untyped } = claim;
const { consumer_generation: __, ...unguarded } = untyped;
const nothing = { ...claim, allocations: {} };
const owner = { project_id: 'mine', user_id: 'me', consumer_type: 'INSTANCE' };

/** Ways to remove a consumer that has this generation. */
const removals: Readonly<Record<string, (world: World, uuid: string, generation: unknown) => Promise<unknown>>> = {
  'its deletion': async ({ send }, uuid) => accepted(await send('DELETE', `/allocations/${uuid}`)),
  'its deletion at 1.12': async ({ send }, uuid) =>
    accepted(await send('DELETE', `/allocations/${uuid}`, undefined, 'placement 1.12')),
  'PUT of no allocations': async ({ send }, uuid, consumer_generation) =>
    accepted(await send('PUT', `/allocations/${uuid}`, { ...nothing, consumer_generation })),
  'POST of no allocations': async ({ send }, uuid, consumer_generation) =>
    accepted(await send('POST', '/allocations', { [uuid]: { ...nothing, consumer_generation } })),
  'the reshaper': async ({ send }, uuid, consumer_generation) => {
    const { json } = accepted(await send('GET', `/resource_providers/${host}/inventories`));
    const allocations = { [uuid]: { ...nothing, consumer_generation } };
    accepted(await send('POST', '/reshaper', { inventories: { [host]: json }, allocations }));
  },
  'the end of its term': async ({ send }, uuid, consumer_generation) => {
    accepted(await send('PUT', `/consumers/${uuid}/term`, { expires_in: 1, consumer_generation }));
    await until('it is removed', async () => {
      const { json } = await send('GET', `/allocations/${uuid}`);
      return at(json, 'consumer_generation') === undefined;
    });
  },
  'another program': async ({ service: { database } }, uuid) => {
    await sql`delete from allocations where consumer_id = ${uuid}`.execute(database.kysely);
    await sql`delete from consumers where uuid = ${uuid}`.execute(database.kysely);
  },
};

/** Inserts a consumer as another program does. */
const inserted =
  (generation: number) =>
  async ({ service: { database } }: World, uuid: string): Promise<void> => {
    await sql`insert into consumers (uuid, project_id, user_id, generation)
      select ${uuid}, p.id, u.id, ${generation} from projects p, users u where p.external_id = 'p' and u.external_id = 'u'`.execute(
      database.kysely,
    );
    await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
      select id, 0, ${uuid}, 1 from resource_providers`.execute(database.kysely);
  };

/** Ways to make it again. */
const claims: Readonly<Record<string, (world: World, uuid: string) => Promise<unknown>>> = {
  'a claim': async ({ send }, uuid) => accepted(await send('PUT', `/allocations/${uuid}`, claim)),
  'a claim with a term': async ({ send }, uuid) =>
    accepted(await send('PUT', `/allocations/${uuid}`, { ...claim, expires_in: 3600 })),
  'a claim at 1.37': async ({ send }, uuid) =>
    accepted(await send('PUT', `/allocations/${uuid}`, untyped, 'placement 1.37')),
  'a claim at 1.12': async ({ send }, uuid) =>
    accepted(await send('PUT', `/allocations/${uuid}`, unguarded, 'placement 1.12')),
  'a claim by query': async ({ send }, uuid) => {
    const { allocations: ___, ...rest } = claim;
    const { json } = accepted(await send('PUT', `/allocations/${uuid}`, { ...rest, candidates: 'resources=VCPU:1' }));
    assert.equal(at(json, 'consumer_generation'), await generationOf(send, uuid));
  },
  'POST of a claim': async ({ send }, uuid) => accepted(await send('POST', '/allocations', { [uuid]: claim })),
  'another program': inserted(1),
  'another program with generation 0': inserted(0),
};

const generationOf = async (send: Send, uuid: string): Promise<unknown> => {
  const { json } = accepted(await send('GET', `/allocations/${uuid}`));
  return at(json, 'consumer_generation');
};

/** Writes of a consumer by a client that knows a generation of it. */
const writes: Readonly<Record<string, (send: Send, uuid: string, generation: unknown) => Promise<Answer>>> = {
  'a renewal': (send, uuid, consumer_generation) =>
    send('PUT', `/consumers/${uuid}/term`, { expires_in: 60, consumer_generation }),
  'the end of a term': (send, uuid, consumer_generation) =>
    send('PUT', `/consumers/${uuid}/term`, { expires_in: null, consumer_generation }, 'placement 2.6'),
  'a change of the owner': (send, uuid, consumer_generation) =>
    send('PUT', `/consumers/${uuid}`, { ...owner, consumer_generation }, 'placement 2.2'),
  'a claim': (send, uuid, consumer_generation) =>
    send('PUT', `/allocations/${uuid}`, { ...claim, consumer_generation }, 'placement 2.1'),
  'a claim of nothing': (send, uuid, consumer_generation) =>
    send('PUT', `/allocations/${uuid}`, { ...nothing, consumer_generation }),
  'POST of a claim': (send, uuid, consumer_generation) =>
    send('POST', '/allocations', { [uuid]: { ...claim, consumer_generation } }),
  'a claim by query': (send, uuid, consumer_generation) => {
    const { allocations: ___, ...rest } = claim;
    return send('PUT', `/allocations/${uuid}`, { ...rest, candidates: 'resources=VCPU:1', consumer_generation });
  },
  'a dry run': (send, uuid, consumer_generation) =>
    send('PUT', `/allocations/${uuid}`, { ...claim, consumer_generation, dry_run: true }),
  'the reshaper': async (send, uuid, consumer_generation) => {
    const { json } = accepted(await send('GET', `/resource_providers/${host}/inventories`));
    const allocations = { [uuid]: { ...claim, consumer_generation } };
    return send('POST', '/reshaper', { inventories: { [host]: json }, allocations });
  },
};

/** Writes with a generation of the former consumer are refused, and those with the one that is shown succeed. */
async function checkWrites({ send }: World, uuid: string, former: unknown): Promise<void> {
  for (const [what, write] of Object.entries(writes)) {
    const { status, text } = await write(send, uuid, former);
    assert.equal(status, 409, `${what}: ${text}`);
    assert.match(text, /placement\.concurrent_update/);
  }
  for (const [what, write] of Object.entries(writes)) {
    const before = await generationOf(send, uuid);
    const { status, text } = await write(send, uuid, before);
    assert.ok(status < 300, `${what}: ${text}`);
    if (what === 'a claim of nothing') accepted(await send('PUT', `/allocations/${uuid}`, claim));
  }
}

test('a client that knows a former consumer cannot write the new one', async () => {
  await withHost(async (world) => {
    const { send } = world;
    for (const [removal, remove] of Object.entries(removals)) {
      const uuid = randomUUID();
      accepted(await send('PUT', `/allocations/${uuid}`, claim));
      assert.equal(await generationOf(send, uuid), 1, 'the first one begins at 1');
      await remove(world, uuid, 1);
      accepted(await send('PUT', `/allocations/${uuid}`, claim));
      assert.ok(Number(await generationOf(send, uuid)) > 1, `after ${removal}`);
      await checkWrites(world, uuid, 1);
    }
    for (const [what, make] of Object.entries(claims)) {
      const uuid = randomUUID();
      accepted(await send('PUT', `/allocations/${uuid}`, claim));
      accepted(await send('DELETE', `/allocations/${uuid}`));
      await make(world, uuid);
      assert.ok(Number(await generationOf(send, uuid)) > 1, `by ${what}`);
      await checkWrites(world, uuid, 1);
    }
  });
});

test('a generation is never used again, however often a consumer is recreated', async () => {
  await withHost(async (world) => {
    const { send } = world;
    const uuid = randomUUID();
    const seen = new Set<unknown>();
    for (const make of Object.values(claims)) {
      await make(world, uuid);
      const first = await generationOf(send, uuid);
      const raised = await writes['a change of the owner']?.(send, uuid, first);
      const second = at(raised?.json, 'consumer_generation');
      assert.equal(await generationOf(send, uuid), second);
      for (const generation of [first, second]) {
        assert.ok(!seen.has(generation), `${generation} again`);
        seen.add(generation);
      }
      accepted(await send('DELETE', `/allocations/${uuid}`));
    }
  });
});

test('all answers of a version show the same generation', async () => {
  await withHost(async ({ send }) => {
    const uuid = randomUUID();
    for (let time = 0; time < 3; time += 1) {
      accepted(await send('PUT', `/allocations/${uuid}`, claim));
      if (time < 2) accepted(await send('DELETE', `/allocations/${uuid}`));
    }
    const expected = await generationOf(send, uuid);
    assert.ok(Number(expected) > 2);
    const one = accepted(await send('GET', `/consumers/${uuid}`));
    assert.equal(at(one.json, 'consumer_generation'), expected);
    const list = accepted(await send('GET', '/consumers'));
    assert.equal(at(list.json, 'consumers', 0, 'consumer_generation'), expected);
    const holders = (version: string) =>
      send('GET', `/resource_providers/${host}/allocations`, undefined, `placement ${version}`);
    const shown = async (version: string) =>
      at(accepted(await holders(version)).json, 'allocations', uuid, 'consumer_generation');
    assert.equal(await shown('2.1'), expected);
    assert.equal(await shown('1.39'), 1);
    const renewed = accepted(
      await send('PUT', `/consumers/${uuid}/term`, { expires_in: 60, consumer_generation: expected }),
    );
    assert.equal(at(renewed.json, 'consumer_generation'), expected);
    const { allocations: ___, ...rest } = claim;
    const query = { ...rest, candidates: 'resources=VCPU:1', consumer_generation: expected };
    const tried = accepted(await send('PUT', `/allocations/${uuid}`, { ...query, dry_run: true }));
    const placed = accepted(await send('PUT', `/allocations/${uuid}`, query));
    assert.equal(at(placed.json, 'consumer_generation'), Number(expected) + 1);
    assert.equal(at(tried.json, 'consumer_generation'), Number(expected) + 1);
    assert.equal(await generationOf(send, uuid), Number(expected) + 1);
    accepted(await send('DELETE', `/allocations/${uuid}`));
    const again = { ...query, consumer_generation: null };
    const triedAgain = accepted(await send('PUT', `/allocations/${uuid}`, { ...again, dry_run: true }));
    const placedAgain = accepted(await send('PUT', `/allocations/${uuid}`, again));
    assert.equal(at(triedAgain.json, 'consumer_generation'), at(placedAgain.json, 'consumer_generation'));
    assert.equal(await generationOf(send, uuid), at(placedAgain.json, 'consumer_generation'));
  });
});

test('up to 1.39 a recreated consumer begins at generation 1 and accepts generation 1', async () => {
  await withHost(async ({ service, send }) => {
    const upstreams = requestsTo(service, 'placement 1.39');
    const uuid = randomUUID();
    for (let time = 0; time < 3; time += 1) {
      accepted(await upstreams('PUT', `/allocations/${uuid}`, claim));
      assert.equal(await generationOf(upstreams, uuid), 1);
      accepted(await upstreams('PUT', `/allocations/${uuid}`, { ...claim, consumer_generation: 1 }));
      assert.equal(await generationOf(upstreams, uuid), 2);
      const { status, text } = await upstreams('PUT', `/allocations/${uuid}`, { ...claim, consumer_generation: 1 });
      assert.equal(status, 409);
      assert.match(text, /expected 2 but got 1/);
      accepted(await send('DELETE', `/allocations/${uuid}`));
    }
  });
});

test('a consumer that was never committed does not raise the first generation of a later one', async () => {
  await withHost(async ({ send }) => {
    const [uuid, other] = [randomUUID(), randomUUID()];
    const tooMuch = newClaim({ [host]: { VCPU: 2000 } });
    assert.equal((await send('PUT', `/allocations/${uuid}`, tooMuch)).status, 409);
    assert.equal((await send('PUT', `/allocations/${uuid}`, newClaim({ [randomUUID()]: { VCPU: 1 } }))).status, 400);
    assert.equal((await send('DELETE', `/allocations/${uuid}`)).status, 404);
    // The record that proves that there is none is made and removed in one transaction.
    accepted(await send('POST', '/allocations', { [uuid]: nothing, [other]: claim }));
    accepted(await send('PUT', `/allocations/${uuid}`, claim));
    assert.equal(await generationOf(send, uuid), 1);
  });
});
