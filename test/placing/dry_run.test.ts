import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { afterRefresh } from '../races/after_refresh.ts';
import { anyEngine } from '../support/engines.ts';
import { type Answer, accepted, at, newClaim } from '../support/requests.ts';
import { errorOf, placed, withHosts } from './placed.ts';

const header = 'placement-dry-run';

test('a dry run has the answer of the later write, and writes nothing', async () => {
  await withHosts(anyEngine, 1, async (send, [host = ''], { database }) => {
    const everything = async () => {
      const { rows } =
        await sql`select (select count(*) from provider_changes) as changes, (select count(*) from consumers) as consumers,
        (select count(*) from projects) as projects, (select count(*) from users) as users,
        (select count(*) from consumer_types) as types, (select count(*) from allocations) as allocations,
        (select sum(generation) from resource_providers) as generations`.execute(database.kysely);
      return rows;
    };
    /** Sends a request as a dry run and then for good. */
    const compare = async (method: string, path: string, body: object): Promise<Answer> => {
      const before = await everything();
      const tried = await send(method, path, { ...body, dry_run: true });
      assert.deepEqual(await everything(), before, `${path} wrote something`);
      const written = await send(method, path, { ...body, dry_run: false });
      assert.equal(tried.headers.get(header), 'true');
      assert.equal(written.headers.get(header), null);
      assert.equal(tried.status, written.status, written.text);
      assert.deepEqual(withoutIds(tried.json), withoutIds(written.json));
      assert.equal(tried.headers.get('etag'), written.headers.get('etag'));
      return written;
    };
    const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
    const owned = { project_id: 'new project', user_id: 'new user', consumer_type: 'NEW_TYPE' };
    const one = await compare('PUT', `/allocations/${first}`, { ...placed('resources=VCPU:2'), ...owned });
    assert.equal(one.status, 200);
    const plain = await compare('PUT', `/allocations/${second}`, newClaim({ [host]: { VCPU: 2 } }));
    assert.equal(plain.status, 204);
    const gang = await compare('POST', '/allocations', {
      [third]: placed('resources=VCPU:3'),
      [first]: { ...newClaim({}), consumer_generation: 1 },
      [second]: placed('resources=VCPU:5', 1),
    });
    assert.equal(gang.status, 200);
    const refusals = [
      await compare('PUT', `/allocations/${third}`, placed('resources=VCPU:4', 1)),
      await compare('PUT', `/allocations/${third}`, placed('resources=VCPU:4', 7)),
      await compare('POST', '/allocations', { [first]: newClaim({ [host]: { VCPU: 1 } }) }),
      await compare('PUT', `/allocations/${third}`, placed('resources=VCPU:some')),
      await compare('POST', '/allocations', { [third]: placed('resources=VCPU:1&limit=1') }),
    ];
    assert.deepEqual(
      refusals.map(({ status, ...answer }) => [status, errorOf({ status, ...answer }).code]),
      [
        [409, 'placement.no_candidates'],
        [409, 'placement.concurrent_update'],
        [409, 'placement.capacity_exceeded'],
        [400, 'placement.undefined_code'],
        [400, 'placement.undefined_code'],
      ],
    );
    const { generation } = Object((await send('GET', `/resource_providers/${host}`)).json);
    const inventories = { [host]: { resource_provider_generation: generation, inventories: { VCPU: { total: 9 } } } };
    const reshaped = await compare('POST', '/reshaper', { inventories, allocations: {} });
    assert.equal(reshaped.status, 204);
    const inUse = { [host]: { resource_provider_generation: generation + 2, inventories: {} } };
    assert.equal((await compare('POST', '/reshaper', { inventories: inUse, allocations: {} })).status, 409);
  });
});

test('a dry run sees the last write of another program', async () => {
  await withHosts(anyEngine, 1, async (send, [host = ''], { database }) => {
    accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
    await sql`update inventories set total = 4`.execute(database.kysely);
    const tried = await send('PUT', `/allocations/${randomUUID()}`, { ...placed('resources=VCPU:4'), dry_run: true });
    assert.equal(tried.status, 409);
    assert.equal(tried.headers.get(header), 'true');
  });
});

/** An error without what differs from request to request. */
function withoutIds(json: unknown): unknown {
  const error = at(json, 'errors', 0);
  return error === undefined ? json : { ...Object(error), request_id: undefined };
}

test('a dry run during which its consumer is written is judged again', async () => {
  await withHosts(anyEngine, 1, async (send, [host = ''], service) => {
    const consumer = randomUUID();
    const put = (body: object) => send('PUT', `/allocations/${consumer}`, body);
    accepted(await put(newClaim({ [host]: { VCPU: 1 } })));
    afterRefresh(service, 1, async () => {
      accepted(await put({ ...newClaim({ [host]: { VCPU: 2 } }), consumer_generation: 1 }));
    });
    const answer = await put({ ...placed('resources=VCPU:3', 1), dry_run: true });
    assert.equal(answer.status, 409, answer.text);
    assert.equal(errorOf(answer).code, 'placement.concurrent_update');
  });
});
