/**
 * Pages list each consumer that exists all the time exactly once, during any other writes. A filter lists exactly the
 * consumers that match.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { createIncompleteConsumers } from '../../db/online/create_incomplete_consumers.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { insertOldAllocations, newUuids } from '../manage/old_data.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const zeros = '00000000-0000-0000-0000-000000000000';

type Listed = {
  readonly uuid: string;
  readonly project_id: string;
  readonly user_id: string;
  readonly consumer_type: string;
  readonly consumer_generation: number | null;
  readonly etag: string | null;
};

/** All pages of a listing. */
async function listAll(send: Send, path: string, eachPage: () => Promise<void> = async () => {}): Promise<Listed[]> {
  const found: Listed[] = [];
  for (let next: string | undefined = path; next !== undefined; await eachPage()) {
    const { json } = accepted(await send('GET', next));
    found.push(...(at(json, 'consumers') as Listed[])); // what the API says of consumers
    next = at(json, 'consumers_links', 0, 'href') as string | undefined; // as above
  }
  return found;
}

/** Makes two hosts, one of them with a child, and consumers of all kinds on them. */
async function prepare({ database }: PlacementService, send: Send) {
  const [host, other, child] = [randomUUID(), randomUUID(), randomUUID()];
  for (const uuid of [host, other]) await makeProvider(send, uuid, { VCPU: { total: 100_000 } });
  await makeProvider(send, child, { VCPU: { total: 100_000 } }, { parent_provider_uuid: host });
  const ids = await database.kysely.selectFrom('resource_providers').select(['id', 'uuid']).execute();
  const idOf = (uuid: string) => ids.find((row) => row.uuid === uuid)?.id ?? 0;
  return { host, other, child, idOf };
}

test('consumers that exist all the time are listed once, while others are created, deleted and changed', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.2');
    const { host, child, idOf } = await prepare(service, send);
    const [claimed, old, bare] = [newUuids(60), newUuids(60), newUuids(20)];
    for (const uuid of claimed) {
      accepted(await send('PUT', `/allocations/${uuid}`, newClaim({ [host]: { VCPU: 1 } })));
    }
    await insertOldAllocations(service.database, idOf(child), old);
    await sql`insert into consumers (uuid, project_id, user_id, generation)
      select uuid, p.id, u.id, 3 from unnest(${bare}::text[]) as uuid, projects p, users u limit ${bare.length}`.execute(
      service.database.kysely,
    );
    const lasting = new Set([...claimed, ...old, ...bare]);
    assert.equal(lasting.size, 140);
    const migration = createIncompleteConsumers(service.database, { projectId: zeros, userId: zeros });
    const passing: string[] = [];
    let step = 0;
    /** The writes between two pages, and while the next page is read. */
    const disturb = async (): Promise<void> => {
      step += 1;
      const uuid = randomUUID();
      passing.push(uuid);
      const completed = old[(7 * step) % old.length];
      const changed = claimed[(11 * step) % claimed.length];
      const generation = at((await send('GET', `/consumers/${changed}`)).json, 'consumer_generation');
      const owner = { project_id: `p${step}`, user_id: 'u', consumer_type: 'INSTANCE' };
      const gone = passing.length > 3 ? passing.shift() : undefined;
      const others = [
        send('PUT', `/allocations/${uuid}`, newClaim({ [host]: { VCPU: 1 } })),
        send('PUT', `/consumers/${completed}`, { ...owner, consumer_generation: null }),
        send('PUT', `/consumers/${changed}`, { ...owner, consumer_generation: generation }),
        ...(gone === undefined ? [] : [send('DELETE', `/allocations/${gone}`)]),
        ...(step % 5 === 0 ? [migration.runBatch(3)] : []),
      ];
      const done = Promise.all(others);
      if (step % 2 === 0) await done;
      else pendingWrites.push(done);
    };
    const pendingWrites: Promise<unknown>[] = [];
    let incomplete = old.length;
    for (const query of ['', `in_tree=${host}&`, '']) {
      const wanted = query === '' ? lasting : new Set([...claimed, ...old]);
      const found = await listAll(send, `/consumers?${query}limit=3`, disturb);
      const uuids = found.map(({ uuid }) => uuid);
      assert.deepEqual(uuids, uuids.toSorted(), 'in order');
      assert.equal(new Set(uuids).size, uuids.length, 'no consumer twice');
      const missing = [...wanted].filter((uuid) => !uuids.includes(uuid));
      assert.deepEqual(missing, [], 'all consumers that exist all the time');
      const left = found.filter(({ consumer_generation }) => consumer_generation === null).length;
      assert.ok(left <= incomplete, `${left} of ${incomplete} are incomplete`);
      incomplete = left;
    }
    await Promise.all(pendingWrites);
    assert.ok(incomplete < old.length, 'some consumers got a record in between');
    while ((await migration.runBatch(50)).done > 0);
    const after = await listAll(send, '/consumers?limit=1000');
    assert.deepEqual(
      [...lasting].filter((uuid) => !after.some((one) => one.uuid === uuid)),
      [],
    );
    assert.ok(after.every(({ consumer_generation }) => consumer_generation !== null));
  });
});

test('a list has exactly the matching consumers, with the tags of their allocations', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.2');
    const { host, other, child, idOf } = await prepare(service, send);
    const places = [host, other, child];
    const wanted = { projects: ['a', 'b', zeros], users: ['x', zeros], types: ['T1', 'T2', 'unknown'] };
    const consumers = newUuids(72);
    for (const [number, uuid] of consumers.entries()) {
      const pick = (list: readonly string[], by: number) => list[Math.floor(number / by) % list.length] ?? '';
      const claim = newClaim({
        [pick(places, 1)]: { VCPU: 1 },
        ...(number % 5 === 0 ? { [pick(places, 2)]: { VCPU: 2 } } : {}),
      });
      const type = pick(wanted.types, 2);
      const owner = { project_id: pick(wanted.projects, 3), user_id: pick(wanted.users, 9) };
      // Before 1.38 a claim has no type.
      const isTyped = type !== 'unknown';
      const { consumer_type: _, ...untyped } = { ...claim, ...owner };
      const body = isTyped ? { ...untyped, consumer_type: type } : untyped;
      accepted(await send('PUT', `/allocations/${uuid}`, body, `placement ${isTyped ? '2.2' : '1.37'}`));
    }
    const old = newUuids(9);
    for (const [number, uuid] of old.entries()) {
      await insertOldAllocations(service.database, idOf(places[number % 3] ?? ''), [uuid]);
    }
    const all = await Array.fromAsync([...consumers, ...old].toSorted(), async (uuid) => {
      const { json } = accepted(await send('GET', `/allocations/${uuid}`));
      const providers = Object.keys(Object(at(json, 'allocations')));
      return { uuid, json, providers };
    });
    const choices = (name: string, values: readonly string[]) => ['', ...values.map((value) => `${name}=${value}&`)];
    let lists = 0;
    for (const project of choices('project_id', [...wanted.projects, 'nobody'])) {
      for (const user of choices('user_id', wanted.users)) {
        for (const type of choices('consumer_type', [...wanted.types, 'NONE'])) {
          for (const provider of choices('resource_provider', [host, other])) {
            for (const tree of choices('in_tree', [child, other])) {
              const path = `/consumers?${project}${user}${type}${provider}${tree}`;
              const query = new URL(path, 'http://x').searchParams;
              const has = (name: string, value: unknown) => !query.has(name) || query.get(name) === value;
              const inTree = query.get('in_tree') === child ? [host, child] : [other];
              const expected = all.filter(
                ({ json, providers }) =>
                  has('project_id', at(json, 'project_id')) &&
                  has('user_id', at(json, 'user_id')) &&
                  has('consumer_type', at(json, 'consumer_type')) &&
                  (!query.has('resource_provider') || providers.includes(query.get('resource_provider') ?? '')) &&
                  (!query.has('in_tree') || inTree.some((uuid) => providers.includes(uuid))),
              );
              const found = await listAll(send, `${path}limit=${lists % 3 === 0 ? 7 : 1000}`);
              assert.deepEqual(
                found.map(({ uuid, etag, project_id, user_id, consumer_type, consumer_generation }) => ({
                  uuid,
                  etag,
                  project_id,
                  user_id,
                  consumer_type,
                  consumer_generation,
                })),
                expected.map(({ uuid, json }) => ({
                  uuid,
                  etag: at(json, 'etag'),
                  project_id: at(json, 'project_id'),
                  user_id: at(json, 'user_id'),
                  consumer_type: at(json, 'consumer_type'),
                  consumer_generation: at(json, 'consumer_generation'),
                })),
                path,
              );
              lists += 1;
            }
          }
        }
      }
    }
    assert.equal(lists, 5 * 3 * 5 * 3 * 3);
  });
});
