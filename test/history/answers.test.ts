/** GET /usage_records and GET /usage_totals: pages, filters and sums against a plain reading of the tables. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { readHistoryState } from '../../db/statements/usage_records.ts';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { engines, freshDatabase, runsOn } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { type ConfigOverrides, openServiceOn, testConfig, withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const version = 'placement 2.9';
const on = { history: { enabled: true } };

/** A record as openapi-2.yaml describes it. */
type Shown = {
  readonly consumer: string;
  readonly name: string | null;
  readonly project_id: string;
  readonly user_id: string;
  readonly consumer_type: string;
  readonly resource_provider: { readonly uuid: string; readonly name: string };
  readonly resource_class: string;
  readonly amount: number;
  readonly from: string;
  readonly until: string | null;
  readonly ended: string | null;
};

async function recordsOf(send: Send, query: string): Promise<Shown[]> {
  const found: Shown[] = [];
  for (let next: string | undefined = `/usage_records?${query}`; next !== undefined; ) {
    const { json } = accepted(await send('GET', next));
    found.push(...(at(json, 'usage_records') as Shown[])); // as openapi-2.yaml says
    next = at(json, 'usage_records_links', 0, 'href') as string | undefined; // as above
  }
  return found;
}

const untilOn = ({ database }: Pick<PlacementService, 'database'>): Promise<void> =>
  until('the history is on', async () => {
    const { rows } = await sql`select from usage_history where is_complete`.execute(database.kysely);
    return rows.length > 0;
  });

/** Months of records of three teams, and something that is held now. */
async function fill(service: PlacementService, send: Send, seed: number) {
  const random = randomFrom(seed);
  const [root, child, other] = Array.from({ length: 3 }, () => randomUUID()) as [string, string, string]; // of this length
  const stock = { VCPU: { total: 1e6 }, PGPU: { total: 1e6 } };
  await makeProvider(send, root, stock, { name: 'root' });
  await makeProvider(send, child, stock, { name: 'child', parent_provider_uuid: root });
  await makeProvider(send, other, stock, { name: 'other' });
  const owners = ['p', 'q', 'r'].flatMap((project) => ['u', 'v'].map((user) => [project, user] as const));
  for (const [project_id, user_id] of owners) {
    for (const consumer_type of ['JOB', 'INSTANCE']) {
      const claim = {
        ...newClaim({ [random.pick([root, child, other])]: { VCPU: 1 + random.below(4), PGPU: 1 } }),
        project_id,
      };
      const held = {
        ...claim,
        user_id,
        consumer_type,
        ...(consumer_type === 'JOB' || random.percent(50) ? { name: `job ${project_id}` } : {}),
      };
      accepted(await send('PUT', `/allocations/${randomUUID()}`, held));
    }
  }
  const rows = Array.from({ length: 400 }, () => {
    const [project, user] = random.pick(owners);
    const host = random.pick([root, child, other]);
    const beganMs = Date.UTC(2026, 7, 1) + random.below(90 * 86_400) * 1000;
    const endedMs = beganMs + 1 + random.below(random.pick([60_000, 86_400_000, 20 * 86_400_000]));
    return {
      project,
      user,
      host,
      className: random.pick(['VCPU', 'PGPU', 'CUSTOM_GONE']),
      amount: 1 + random.below(9),
      beganMs,
      endedMs,
    };
  });
  // Some end together, as the records of a consumer do that is released.
  for (const [index, row] of rows.entries()) {
    const before = rows[index - 1];
    if (before !== undefined && index % 2 === 1 && row.beganMs < before.endedMs) row.endedMs = before.endedMs;
  }
  const column = (name: keyof (typeof rows)[number]) => rows.map((row) => row[name]);
  await sql`insert into usage_records (id, consumer_id, name, project_id, user_id, consumer_type_id, provider_uuid, provider_name, class_name,
      amount, began_at, ended_at, ended)
    select nextval('usage_record_id_seq'), gen_random_uuid()::text, case when amount = 9 then 'gone' end, p.id, u.id, null, host, 'name', class, amount,
      to_timestamp(began / 1000), to_timestamp(ended / 1000), 'released'
    from unnest(${column('project')}::text[], ${column('user')}::text[], ${column('host')}::text[], ${column('className')}::text[],
      ${column('amount')}::integer[], ${column('beganMs')}::float8[], ${column('endedMs')}::float8[]) as r (project, owner, host, class, amount, began, ended)
    join projects p on p.external_id = project join users u on u.external_id = owner`.execute(service.database.kysely);
  return { root, child, other };
}

const key = (record: Shown): string =>
  `${record.consumer} ${record.resource_provider.uuid} ${record.resource_class} ${record.from}`;

for (const engine of engines) {
  test(`filters, pages and sums agree with a plain reading of all records, on ${engine}`, async (t) => {
    await withTestService(engine, on, async (service) => {
      const send = requestsTo(service, version);
      const seed = seedFor(t);
      await untilOn(service);
      const { root, child, other } = await fill(service, send, seed);
      const random = randomFrom(seed);
      const all = await recordsOf(send, 'limit=1000');
      assert.equal(all.length, 400 + 24);
      assert.equal(new Set(all.map(key)).size, all.length);
      const [ofName, ended] = [all.find(({ name }) => name === 'job p'), all.find(({ name }) => name === 'gone')];
      assert.ok(ofName !== undefined && ended !== undefined);
      const choices: Readonly<Record<string, readonly string[]>> = {
        consumer: [ofName.consumer, ended.consumer, ended.consumer.toUpperCase(), randomUUID()],
        name: ['job p', 'job q', 'job P', 'gone'],
        project_id: ['p', 'q', 'nobody', '00000000-0000-0000-0000-000000000000'],
        user_id: ['u', 'v'],
        consumer_type: ['JOB', 'unknown'],
        resource_provider: [root, other, randomUUID()],
        in_tree: [child, other],
        resource_class: ['VCPU', 'CUSTOM_GONE', 'NEVER'],
        // What is held now has no part in a time that comes.
        from: ['2026-08-01T00:00:00Z', '2026-09-03T04:05:06Z', new Date(Date.now() + 600_000).toISOString()],
        until: ['2026-09-30T00:00:00Z', '2026-10-15T12:00:00Z'],
      };
      for (let round = 0; round < runsOn(engine, 60); round += 1) {
        const query = new URLSearchParams();
        for (const [name, values] of Object.entries(choices))
          if (random.percent(30)) query.set(name, random.pick(values));
        if ((query.get('from') ?? '') > (query.get('until') ?? '')) query.delete('until');
        const is = (name: string, value: string) => !query.has(name) || query.get(name) === value;
        const tree = query.get('in_tree') === other ? [other] : [root, child];
        const [from, to] = [
          Date.parse(query.get('from') ?? '1970-01-01'),
          Date.parse(query.get('until') ?? '2999-01-01'),
        ];
        const expected = all.filter(
          (record) =>
            query.get('consumer')?.toLowerCase() === (query.has('consumer') ? record.consumer : undefined) &&
            is('name', record.name ?? '') &&
            is('project_id', record.project_id) &&
            is('user_id', record.user_id) &&
            is('consumer_type', record.consumer_type) &&
            is('resource_provider', record.resource_provider.uuid) &&
            is('resource_class', record.resource_class) &&
            (!query.has('in_tree') || tree.includes(record.resource_provider.uuid)) &&
            Date.parse(record.from) < to &&
            (record.until === null || Date.parse(record.until) > from),
        );
        const limit = random.pick([1, 7, 100, 1000]);
        const found = await recordsOf(send, `${query}&limit=${Math.max(limit, expected.length > 60 ? 20 : 1)}`);
        assert.deepEqual(found.map(key).toSorted(), expected.map(key).toSorted(), String(query));
        const open = await recordsOf(send, `${query}&open=true`);
        assert.deepEqual(
          open.map(key).toSorted(),
          expected
            .filter(({ until: end }) => end === null)
            .map(key)
            .toSorted(),
        );

        const by = random.pick([
          ['project_id'],
          ['user_id', 'resource_class'],
          ['resource_provider'],
          ['month', 'project_id'],
          ['day', 'month'],
          ['day'],
          ['resource_class', 'consumer_type', 'day'],
        ]);
        // Both are of about the same time: the open record continues.
        const nowMs = Date.now();
        const { json } = accepted(await send('GET', `/usage_totals?${query}&by=${by.join()}`));
        const sums = new Map<string, number>();
        for (const record of expected) {
          const sinceMs = Math.max(Date.parse(record.from), from);
          const endMs = Math.min(record.until === null ? nowMs : Date.parse(record.until), to);
          const step = by.includes('day') ? 10 : 7;
          for (let startMs = sinceMs; startMs < endMs; ) {
            const part = new Date(startMs);
            const nextMs = !by.some((name) => name === 'day' || name === 'month')
              ? endMs
              : Math.min(
                  endMs,
                  step === 10
                    ? Date.UTC(part.getUTCFullYear(), part.getUTCMonth(), part.getUTCDate() + 1)
                    : Date.UTC(part.getUTCFullYear(), part.getUTCMonth() + 1),
                );
            const names = by.map((name) =>
              name === 'day' || name === 'month'
                ? part.toISOString().slice(0, name === 'day' ? 10 : 7)
                : name === 'resource_provider'
                  ? record.resource_provider.uuid
                  : record[name as 'project_id'],
            );
            sums.set(
              names.join(' '),
              (sums.get(names.join(' ')) ?? 0) + (record.amount * (nextMs - startMs)) / 3_600_000,
            );
            startMs = nextMs;
          }
        }
        const totals = at(json, 'usage_totals') as Record<string, unknown>[]; // as openapi-2.yaml says
        const shown = totals.map((total) =>
          by.map((name) => (name === 'resource_provider' ? at(total, name, 'uuid') : total[name])).join(' '),
        );
        assert.deepEqual(shown.toSorted(), [...sums.keys()].toSorted(), `${query} ${by}`);
        for (const [index, name] of shown.entries()) {
          // Open records continue between the two reads.
          assert.ok(
            Math.abs(Number(totals[index]?.amount_hours) - (sums.get(name) ?? 0)) < 0.05,
            `${query} ${by} ${name}`,
          );
        }
      }
    });
  });

  test(`the records of a rewrite, a move, a new owner, a term and a release have their reasons, on ${engine}`, async () => {
    await withTestService(engine, on, async (service) => {
      const send = requestsTo(service, version);
      await untilOn(service);
      const [one, two, consumer, short] = Array.from({ length: 4 }, () => randomUUID()) as [
        string,
        string,
        string,
        string,
      ]; // of this length
      for (const uuid of [one, two]) await makeProvider(send, uuid, { VCPU: { total: 8 } });
      const write = async (more: object) => {
        const { consumer_generation = null } = Object((await send('GET', `/allocations/${consumer}`)).json);
        accepted(
          await send('PUT', `/allocations/${consumer}`, {
            ...newClaim({}),
            consumer_generation,
            name: 'job-1',
            ...more,
          }),
        );
      };
      const amountOn = (host: string, amount: number) => ({ allocations: { [host]: { resources: { VCPU: amount } } } });
      await write(amountOn(one, 1));
      await write(amountOn(one, 1));
      await write(amountOn(one, 2));
      await write(amountOn(two, 2));
      await write({ ...amountOn(two, 2), user_id: 'v' });
      accepted(await send('DELETE', `/allocations/${consumer}`));
      accepted(await send('PUT', `/allocations/${short}`, { ...newClaim({ [one]: { VCPU: 1 } }), expires_in: 1 }));
      await until('the term is over', async () => (await recordsOf(send, 'open=true')).length === 0);
      const records = await recordsOf(send, '');
      assert.deepEqual(
        records.map(({ name, user_id, resource_provider, amount, ended }) => [
          name,
          user_id,
          resource_provider.uuid,
          amount,
          ended,
        ]),
        [
          ['job-1', 'u', one, 1, 'rewritten'],
          ['job-1', 'u', one, 2, 'moved'],
          ['job-1', 'u', two, 2, 'owner'],
          ['job-1', 'v', two, 2, 'released'],
          [null, 'u', one, 1, 'term'],
        ],
      );
      for (const [index, { from }] of records.slice(1, 4).entries()) assert.equal(from, records[index]?.until);
    });
  });

  test(`all sums of a provider that was renamed have the same name, also after its deletion, on ${engine}`, async () => {
    await withTestService(engine, on, async (service) => {
      const send = requestsTo(service, version);
      await untilOn(service);
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 8 } }, { name: 'host-z' });
      const claim = async (project_id: string): Promise<string> => {
        const consumer = randomUUID();
        const body = { ...newClaim({ [host]: { VCPU: 1 } }), project_id };
        accepted(await send('PUT', `/allocations/${consumer}`, body));
        return consumer;
      };
      const [early, late] = [await claim('early'), await claim('late')];
      accepted(await send('DELETE', `/allocations/${early}`));
      accepted(await send('PUT', `/resource_providers/${host}`, { name: 'host-a' }));
      const namesOf = async () => {
        const { json } = accepted(await send('GET', '/usage_totals?by=resource_provider,project_id'));
        return [0, 1].map((index) => at(json, 'usage_totals', index, 'resource_provider', 'name'));
      };
      assert.deepEqual(await namesOf(), ['host-a', 'host-a']);
      accepted(await send('DELETE', `/allocations/${late}`));
      accepted(await send('DELETE', `/resource_providers/${host}`));
      const [name, ...others] = await namesOf();
      assert.ok(name === 'host-a' || name === 'host-z', String(name));
      assert.deepEqual(others, [name]);
    });
  });

  test(`a process that starts switches the history by its configuration, with what is held then, on ${engine}`, async () => {
    await withSharedDatabase(engine, async (placementDatabase) => {
      const as = async <T>(overrides: ConfigOverrides, use: (service: PlacementService, send: Send) => Promise<T>) => {
        const service = await openService(testConfig({ ...overrides, placementDatabase }));
        try {
          return await use(service, requestsTo(service, version));
        } finally {
          await service.close();
        }
      };
      const [host, held] = [randomUUID(), randomUUID()];
      await as({}, async (_service, send) => {
        await makeProvider(send, host, { VCPU: { total: 8 } });
        accepted(await send('PUT', `/allocations/${held}`, newClaim({ [host]: { VCPU: 1 } })));
        assert.deepEqual(await recordsOf(send, ''), []);
        assert.deepEqual(at((await send('GET', '/usage_totals?by=day')).json, 'usage_totals'), []);
      });
      const switchedMs = Date.now();
      await as(on, async (service, send) => {
        await untilOn(service);
        const [record, ...others] = await recordsOf(send, '');
        assert.deepEqual([record?.consumer, record?.amount, record?.until, others.length], [held, 1, null, 0]);
        assert.ok(Date.parse(`${record?.from}`) >= switchedMs - 1000, record?.from);
      });
      await as({}, async (service, send) => {
        await until('the history is off', async () => {
          const { rows } = await sql`select from usage_history`.execute(service.database.kysely);
          return rows.length === 0;
        });
        const [record] = await recordsOf(send, '');
        assert.ok(record?.until != null && record.ended === null, JSON.stringify(record));
        accepted(await send('DELETE', `/allocations/${held}`));
        assert.equal((await recordsOf(send, '')).length, 1);
      });
    });
  });

  test(`claims are recorded as soon as a service has started, on ${engine}`, async () => {
    await withTestService(engine, on, async (service) => {
      const send = requestsTo(service, version);
      const host = randomUUID();
      await makeProvider(send, host, { VCPU: { total: 8 } });
      accepted(await send('PUT', `/allocations/${randomUUID()}`, newClaim({ [host]: { VCPU: 1 } })));
      assert.equal((await recordsOf(send, '')).length, 1);
    });
  });

  test(`each wrong parameter of the history is refused with its name and its value, on ${engine}`, async () => {
    await withTestService(engine, {}, async (service) => {
      const send = requestsTo(service, version);
      const shared: Readonly<Record<string, string>> = {
        'project_id=': 'project_id',
        'user_id=': 'user_id',
        'consumer_type=job': 'job',
        'resource_provider=x': 'x',
        'in_tree=y': 'y',
        [`in_tree=${randomUUID()}`]: 'in_tree',
        'from=yesterday': 'yesterday',
        'until=2026-13-01T00:00:00Z': '2026-13-01',
        'from=2026-11-02T00:00:00Z&until=2026-11-01T00:00:00Z': 'until',
        'from=2026-11-02T00:00:00Z&until=2026-11-02T00:00:00Z': 'until',
        'project_id=a&project_id=b': 'project_id',
        'consumer=z': 'z',
        'consumer=': 'consumer',
        [`consumer=${randomUUID()}&consumer=${randomUUID()}`]: 'consumer',
        'name=': 'name',
        'name=a&name=b': 'name',
        'name_contains=a': 'name_contains',
      };
      const ofRecords = {
        'limit=0': 'limit',
        'limit=1001': '1001',
        'marker=z': 'z',
        'marker=ended-1-x': 'ended-1-x',
        'marker=ended-1-9999999999999999999': 'ended-1',
        'open=yes': 'yes',
        'by=day': 'by',
      };
      const ofTotals = { 'by=': 'by', 'by=week': 'week', 'by=day,day': 'day,day', 'limit=5': 'limit' };
      const requests = [
        ...Object.entries({ ...shared, ...ofRecords }).map(
          ([query, named]) => [`/usage_records?${query}`, named] as const,
        ),
        ...Object.entries(shared).map(([query, named]) => [`/usage_totals?by=day&${query}`, named] as const),
        ...Object.entries(ofTotals).map(([query, named]) => [`/usage_totals?${query}`, named] as const),
        ['/usage_totals', 'by'] as const,
      ];
      for (const [path, named] of requests) {
        const { status, json } = await send('GET', path);
        assert.equal(status, 400, `${path}: ${status}`);
        assert.ok(String(at(json, 'errors', 0, 'detail')).includes(named), `${path}: ${JSON.stringify(json)}`);
      }
      for (const path of ['/usage_records', '/usage_totals?by=day']) {
        assert.equal((await send('GET', path, undefined, 'placement 2.8')).status, 404);
      }
    });
  });
}

test('a start waits shortly for the history, and not for a transaction that keeps it switched off: postgresql', async () => {
  const database = await freshDatabase('postgresql');
  const other = await openDatabase(database.settings);
  const opened: PlacementService[] = [];
  try {
    await other.kysely.transaction().execute(async (trx) => {
      await sql`lock table allocations in row exclusive mode`.execute(trx);
      const startedMs = performance.now();
      const service = await openServiceOn(database, on);
      opened.push(service);
      assert.ok(performance.now() - startedMs >= 1_990);
      assert.equal(await readHistoryState(service.database), 'off');
    });
    for (const service of opened) await untilOn(service);
  } finally {
    for (const service of opened) await service.close();
    await other.close();
    await database.drop();
  }
});
