/** What consumers hold: each filter shows exactly what the tables have, page by page, and a page is of one snapshot. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import type { PlacementService } from '../../src/start/service.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { anyEngine } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';

const version = 'placement 2.9';

/** A row as openapi-2.yaml describes it. */
type Holding = {
  readonly consumer: string;
  readonly name: string | null;
  readonly project_id: string;
  readonly user_id: string;
  readonly consumer_type: string;
  readonly resource_provider: { readonly uuid: string; readonly name: string };
  readonly root: { readonly uuid: string; readonly name: string };
  readonly resources: Readonly<Record<string, number>>;
  readonly since: string | null;
  readonly expires_at: string | null;
};

/** All pages of a list, each with its rows. */
async function pagesOf(send: Send, query: string): Promise<readonly (readonly Holding[])[]> {
  const pages: Holding[][] = [];
  for (let next: string | undefined = `/holdings?${query}`; next !== undefined; ) {
    const { json } = accepted(await send('GET', next));
    pages.push(at(json, 'holdings') as Holding[]); // as openapi-2.yaml says
    next = at(json, 'holdings_links', 0, 'href') as string | undefined; // as above
  }
  return pages;
}

/** A tree of three hosts, another host, and consumers of all kinds on them: 700 with a record and 40 without one. */
async function fill(service: PlacementService, send: Send, seed: number) {
  const random = randomFrom(seed);
  const [root, child, grandchild, other] = Array.from({ length: 4 }, () => randomUUID()) as [
    string,
    string,
    string,
    string,
  ]; // of this length
  const stock = { VCPU: { total: 1e6 }, MEMORY_MB: { total: 1e6 }, PGPU: { total: 1e6 } };
  await makeProvider(send, root, stock, { name: 'root' });
  await makeProvider(send, child, stock, { parent_provider_uuid: root, name: 'child' });
  await makeProvider(send, grandchild, stock, { parent_provider_uuid: child, name: 'grandchild' });
  await makeProvider(send, other, stock, { name: 'other' });
  accepted(
    await send('PUT', `/allocations/${randomUUID()}`, { ...newClaim({ [other]: { VCPU: 1 } }), consumer_type: 'JOB' }),
  );
  const { kysely } = service.database;
  await sql`insert into projects (external_id) values ('q')`.execute(kysely);
  await sql`insert into users (external_id) values ('v')`.execute(kysely);
  const hosts = [root, child, grandchild, other];
  const rows = Array.from({ length: 740 }, (_, index) => {
    const consumer = randomUUID();
    const project = random.percent(80) ? 'p' : 'q';
    const user = random.percent(95) ? 'u' : 'v';
    const type = random.pick(['INSTANCE', 'JOB', null]);
    const held = Array.from({ length: 1 + random.below(3) }, () => ({
      host: random.pick(hosts),
      className: random.percent(97) ? random.pick(['VCPU', 'MEMORY_MB']) : 'PGPU',
    }));
    const isBare = random.percent(5);
    return {
      consumer,
      project,
      user,
      type,
      hasRecord: index >= 40,
      held: isBare ? [] : [...new Map(held.map((each) => [JSON.stringify(each), each])).values()],
    };
  });
  await sql`insert into consumer_types (name) values ('INSTANCE'), ('JOB') on conflict do nothing`.execute(kysely);
  const recorded = rows.filter(({ hasRecord }) => hasRecord);
  await sql`insert into consumers (uuid, project_id, user_id, consumer_type_id, generation)
    select uuid, p.id, u.id, t.id, 1 from unnest(${recorded.map((row) => row.consumer)}::text[], ${recorded.map((row) => row.project)}::text[],
      ${recorded.map((row) => row.user)}::text[], ${recorded.map((row) => row.type)}::text[]) as c (uuid, project, owner, type)
    join projects p on p.external_id = project join users u on u.external_id = owner left join consumer_types t on t.name = type`.execute(
    kysely,
  );
  const held = rows.flatMap(({ consumer, held }) => held.map((each) => ({ consumer, ...each })));
  await sql`insert into allocations (consumer_id, resource_provider_id, resource_class_id, used, created_at)
    select consumer, p.id, k.id, 1, '2026-11-01' from unnest(${held.map((row) => row.consumer)}::text[], ${held.map((row) => row.host)}::text[],
      ${held.map((row) => row.className)}::text[]) as a (consumer, host, class)
    join resource_providers p on p.uuid = host join resource_classes k on k.name = class`.execute(kysely);
  return { root, child, grandchild, other };
}

/** One row for each allocation, as the tables have it. */
type Plain = {
  readonly consumer: string;
  readonly project: string;
  readonly user: string;
  readonly type: string;
  readonly host: string;
  readonly name: string;
};

const readPlainly = async ({ database }: PlacementService): Promise<readonly Plain[]> => {
  const { rows } =
    await sql<Plain>`select a.consumer_id as consumer, coalesce(o.external_id, '00000000-0000-0000-0000-000000000000') as project,
      coalesce(u.external_id, '00000000-0000-0000-0000-000000000000') as user, coalesce(t.name, 'unknown') as type, p.uuid as host, k.name
    from allocations a join resource_providers p on p.id = a.resource_provider_id join resource_classes k on k.id = a.resource_class_id
    left join consumers c on c.uuid = a.consumer_id left join projects o on o.id = c.project_id left join users u on u.id = c.user_id
    left join consumer_types t on t.id = c.consumer_type_id`.execute(database.kysely);
  return rows;
};

/** The rows of the list that a query selects: consumer, host and classes. */
function expected(
  all: readonly Plain[],
  requested: URLSearchParams,
  hosts: Awaited<ReturnType<typeof fill>>,
): readonly string[] {
  const { root, child, grandchild, other } = hosts;
  const inTree = requested.get('in_tree');
  const tree = inTree === null ? undefined : inTree === other ? [other] : [root, child, grandchild];
  const is = (name: string, value: string): boolean => !requested.has(name) || requested.get(name) === value;
  const chosen = all.filter(
    (row) =>
      is('project_id', row.project) &&
      is('user_id', row.user) &&
      is('consumer_type', row.type) &&
      is('resource_provider', row.host) &&
      is('resource_class', row.name) &&
      tree?.includes(row.host) !== false,
  );
  const rows = Map.groupBy(chosen, ({ consumer, host }) => `${consumer} ${host}`);
  return Array.from(
    rows,
    ([key, of]) =>
      `${key} ${of
        .map(({ name }) => name)
        .toSorted()
        .join()}`,
  ).toSorted();
}

const described = (row: Holding): string =>
  `${row.consumer} ${row.resource_provider.uuid} ${Object.keys(row.resources).join()}`;

test('each filter shows exactly what the tables have, in pages of any length', async (t) => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, version);
    const seed = seedFor(t);
    const hosts = await fill(service, send, seed);
    const all = await readPlainly(service);
    const random = randomFrom(seed);
    const choices: Readonly<Record<string, readonly string[]>> = {
      project_id: ['p', 'q', 'nobody', '00000000-0000-0000-0000-000000000000'],
      user_id: ['u', 'v', '00000000-0000-0000-0000-000000000000'],
      consumer_type: ['INSTANCE', 'JOB', 'unknown'],
      resource_provider: Object.values(hosts),
      in_tree: Object.values(hosts),
      resource_class: ['VCPU', 'PGPU', 'DISK_GB'],
    };
    const requested = Object.entries(choices).flatMap(([name, values]) =>
      values.map((value) => new URLSearchParams({ [name]: value })),
    );
    for (let count = 0; count < 60; count += 1) {
      const query = new URLSearchParams();
      for (const [name, values] of Object.entries(choices))
        if (random.percent(35)) query.set(name, random.pick(values));
      requested.push(query);
    }
    for (const query of requested) {
      const limit = random.pick([7, 60, 1000]);
      const pages = await pagesOf(send, `${query}&limit=${limit}`);
      const found = pages.flat();
      assert.deepEqual(found.map(described).toSorted(), expected(all, query, hosts), String(query));
      const consumers = pages.map((page) => [...new Set(page.map(({ consumer }) => consumer))]);
      assert.deepEqual(
        consumers.flat(),
        [...new Set(found.map(({ consumer }) => consumer))].toSorted(),
        'no consumer is on two pages',
      );
      for (const page of pages.slice(0, -1)) {
        const last = page.at(-1)?.consumer;
        assert.ok(
          page.length >= limit && page.findIndex(({ consumer }) => consumer === last) < limit,
          `${page.length} rows`,
        );
      }
    }
  });
});

test('a row has the names of its provider, class and owner, and a move is shown as a whole', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, version);
    const [host, node, other, consumer] = Array.from({ length: 4 }, () => randomUUID()) as [
      string,
      string,
      string,
      string,
    ]; // of this length
    await makeProvider(send, host, { VCPU: { total: 8 } }, { name: 'host-1' });
    await makeProvider(send, node, { PGPU: { total: 8 } }, { name: 'gpu-1', parent_provider_uuid: host });
    await makeProvider(send, other, { VCPU: { total: 8 } }, { name: 'host-2' });
    const claim = { ...newClaim({ [host]: { VCPU: 2 }, [node]: { PGPU: 1 } }), name: 'train-7', expires_in: 600 };
    const beganMs = Date.now();
    accepted(await send('PUT', `/allocations/${consumer}`, claim));
    const shown = Object((await send('GET', `/consumers/${consumer}`)).json);
    const [rows = []] = await pagesOf(send, 'project_id=p');
    const owner = { consumer, name: 'train-7', project_id: 'p', user_id: 'u', consumer_type: 'INSTANCE' };
    const [first] = rows;
    assert.ok(
      first?.since && Date.parse(first.since) >= beganMs - 1000 && Date.parse(first.since) <= Date.now() + 1000,
    );
    const times = { since: first.since, expires_at: shown.expires_at };
    const root = { uuid: host, name: 'host-1' };
    assert.deepEqual(
      rows.toSorted((a, b) => (a.resource_provider.name < b.resource_provider.name ? -1 : 1)),
      [
        { ...owner, resource_provider: { uuid: node, name: 'gpu-1' }, root, resources: { PGPU: 1 }, ...times },
        { ...owner, resource_provider: root, root, resources: { VCPU: 2 }, ...times },
      ],
    );
    let isMoving = true;
    const moves = (async () => {
      for (let step = 0; step < 40; step += 1) {
        const { consumer_generation } = Object((await send('GET', `/allocations/${consumer}`)).json);
        const places = step % 2 === 0 ? { [other]: { VCPU: 3 } } : { [host]: { VCPU: 2 }, [node]: { PGPU: 1 } };
        accepted(await send('PUT', `/allocations/${consumer}`, { ...newClaim(places), consumer_generation }));
      }
      isMoving = false;
    })();
    while (isMoving) {
      const [page = []] = await pagesOf(send, 'limit=1');
      assert.match(
        page
          .map(({ resources }) => JSON.stringify(resources))
          .toSorted()
          .join(),
        /^(\{"VCPU":3\}|\{"PGPU":1\},\{"VCPU":2\})$/,
      );
    }
    await moves;
  });
});

test('each wrong parameter of holdings is refused with its name and its value', async () => {
  await withTestService(anyEngine, {}, async (service) => {
    const send = requestsTo(service, version);
    const wrong: Readonly<Record<string, string>> = {
      'project_id=': 'project_id',
      'user_id=': 'user_id',
      'consumer_type=job': 'job',
      'resource_provider=x': 'x',
      [`resource_provider=${randomUUID()}`]: 'resource_provider',
      'in_tree=y': 'y',
      [`in_tree=${randomUUID()}`]: 'in_tree',
      'resource_class=NONE': 'resource_class: No such resource class NONE',
      'limit=0': 'limit',
      'limit=1001': '1001',
      'limit=x': 'x',
      'marker=z': 'z',
      'project_id=a&project_id=b': 'project_id',
      'name=a': 'name',
    };
    for (const [query, named] of Object.entries(wrong)) {
      const { status, json } = await send('GET', `/holdings?${query}`);
      assert.equal(status, 400, query);
      assert.ok(String(at(json, 'errors', 0, 'detail')).includes(named), `${query}: ${JSON.stringify(json)}`);
    }
    assert.equal((await send('GET', '/holdings', undefined, 'placement 2.8')).status, 404);
    assert.deepEqual((await send('GET', '/holdings')).json, { holdings: [] });
  });
});
