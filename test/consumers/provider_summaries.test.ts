/** A summary is equal to the reads of a single provider. Other writes do not disturb the pages. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

type Summary = Readonly<Record<string, unknown>> & { readonly uuid: string };

async function listAll(send: Send, path: string, eachPage: () => Promise<unknown>): Promise<readonly Summary[]> {
  const found: Summary[] = [];
  for (let next: string | undefined = path; next !== undefined; await eachPage()) {
    const { json } = accepted(await send('GET', next));
    found.push(...(at(json, 'provider_summaries') as Summary[])); // what the API says of providers
    next = at(json, 'provider_summaries_links', 0, 'href') as string | undefined; // as above
  }
  return found;
}

/** The same data by five reads. */
async function readSingly(send: Send, uuid: string): Promise<Summary> {
  const own = `/resource_providers/${uuid}`;
  const [provider, inventories, usages, traits, aggregates] = await Promise.all(
    ['', '/inventories', '/usages', '/traits', '/aggregates'].map(
      async (part) => accepted(await send('GET', own + part)).json,
    ),
  );
  const { links: _, etag: __, ...itself } = Object(provider);
  const withoutTags = Object.entries(Object(at(inventories, 'inventories'))).map(([name, inventory]) => {
    const { etag: _, ...fields } = Object(inventory);
    return [name, fields];
  });
  return {
    ...itself,
    inventories: Object.fromEntries(withoutTags),
    usages: at(usages, 'usages'),
    traits: at(traits, 'traits'),
    aggregates: at(aggregates, 'aggregates'),
  };
}

test('each whole provider is listed once, while others are made and deleted', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, 'placement 2.2');
    const uuids = Array.from({ length: 60 }, () => randomUUID());
    const aggregates = [randomUUID(), randomUUID()];
    for (const [number, uuid] of uuids.entries()) {
      const parent = number % 4 === 3 ? { parent_provider_uuid: uuids[number - 1] } : {};
      const inventories = {
        VCPU: { total: 8, allocation_ratio: 4 },
        DISK_GB: { total: 10 + (number % 3), reserved: 1 },
      };
      await makeProvider(send, uuid, number % 5 === 4 ? {} : inventories, { name: `höst "${number}"`, ...parent });
      const generation = at(accepted(await send('GET', `/resource_providers/${uuid}`)).json, 'generation');
      const traits = number % 2 === 0 ? ['HW_CPU_X86_AVX2'] : [];
      const guard = { resource_provider_generation: generation };
      if (number % 3 > 0) {
        accepted(await send('PUT', `/resource_providers/${uuid}/traits`, { traits, ...guard }));
      } else {
        const body = { aggregates: [aggregates[number % 2]], ...guard };
        accepted(await send('PUT', `/resource_providers/${uuid}/aggregates`, body));
      }
    }
    for (const uuid of uuids.slice(0, 4)) {
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [uuid]: { VCPU: 32 } })));
    }
    const expected = new Map<string, Summary>();
    for (const uuid of uuids) expected.set(uuid, await readSingly(send, uuid));
    let last = '';
    const disturb = async () => {
      if (last !== '') accepted(await send('DELETE', `/resource_providers/${last}`));
      last = randomUUID();
      accepted(await send('POST', '/resource_providers', { uuid: last, name: last }));
    };
    const found = await listAll(send, '/provider_summaries?limit=7', disturb);
    const order = found.map(({ uuid }) => uuid);
    assert.deepEqual(order, order.toSorted());
    assert.equal(new Set(order).size, order.length);
    assert.deepEqual(
      found.filter(({ uuid }) => expected.has(uuid)),
      [...expected.values()].toSorted((a, b) => (a.uuid < b.uuid ? -1 : 1)),
    );

    const [host = ''] = uuids;
    const filters = [
      `in_tree=${uuids[3]}`,
      `member_of=${aggregates[0]}`,
      `member_of=in:${aggregates.join(',')}`,
      `member_of=!in:${aggregates.join(',')}`,
      'required=HW_CPU_X86_AVX2',
      'required=!HW_CPU_X86_AVX2',
      `required=in:HW_CPU_X86_AVX2,HW_CPU_X86_VMX&member_of=!${aggregates[1]}`,
      `member_of=${aggregates[0]}&in_tree=${host}`,
    ];
    for (const filter of filters) {
      const { json } = accepted(await send('GET', `/resource_providers?${filter}`));
      const listed = (at(json, 'resource_providers') as readonly Summary[]).map(({ uuid }) => uuid); // as above
      const summed = await listAll(send, `/provider_summaries?${filter}&limit=2`, async () => {});
      assert.deepEqual(
        summed.map(({ uuid }) => uuid),
        listed.toSorted(),
        filter,
      );
    }
    const some = [host, randomUUID(), uuids[9], host].join(',').toUpperCase();
    const named = await listAll(send, `/provider_summaries?uuid=in:${some}`, async () => {});
    assert.deepEqual(
      named,
      [host, uuids[9] ?? ''].toSorted().map((uuid) => expected.get(uuid)),
    );
  });
});

test('ten thousand providers in one answer, and the rest after its link', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const { kysely } = service.database;
    await sql`insert into resource_providers (uuid, name, generation)
      select gen_random_uuid(), repeat('n', 150) || i, 0 from generate_series(1, 12000) i`.execute(kysely);
    await sql`update resource_providers set root_provider_id = id`.execute(kysely);
    await sql`insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
      select id, c, id, 0, 1, id, 1, 1.5 from resource_providers, generate_series(0, 6) c`.execute(kysely);
    const send = requestsTo(service, 'placement 2.2');
    // More than 8 MB, which are sent while they are generated.
    const first = accepted(await send('GET', '/provider_summaries?limit=10000'));
    assert.ok(first.text.length > 9_000_000, `${first.text.length} bytes`);
    assert.equal(first.headers.get('content-length'), null);
    const second = accepted(await send('GET', String(at(first.json, 'provider_summaries_links', 0, 'href'))));
    const uuids = [first, second].flatMap(
      ({ json }) => (at(json, 'provider_summaries') as readonly Summary[]).map(({ uuid }) => uuid), // as above
    );
    assert.equal(uuids.length, 12_000);
    assert.deepEqual(uuids, [...new Set(uuids)].toSorted());
    assert.equal(at(second.json, 'provider_summaries_links'), undefined);
  });
});
