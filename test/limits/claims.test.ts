/** Limits are enforced in the claim: on both databases, at each version, and for each way to raise what a project has. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { endCountingWithoutLimits } from '../../db/statements/limits.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine, type Engine, engines } from '../support/engines.ts';
import { type Answer, accepted, at, makeProvider, requestsTo, type Send } from '../support/requests.ts';
import { withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';

const host = randomUUID();

type Scene = { readonly send: Send; readonly service: PlacementService; readonly claim: Claim; readonly used: Used };

/** A claim of a consumer on the host. @returns its answer */
type Claim = (resources: Readonly<Record<string, number>>, options?: ClaimOptions) => Promise<Answer>;
type ClaimOptions = { uuid?: string; project?: string; type?: string; generation?: number | null; version?: string };

/** What a project has of the resources and consumers that limits are of, by the service, and by GET /usages. */
type Used = (project?: string) => Promise<Readonly<Record<string, unknown>>>;

async function withHost(engine: Engine, use: (scene: Scene) => Promise<void>): Promise<void> {
  await withTestService(engine, { placement: { uncountedTypes: ['MIGRATION'] } }, async (service) => {
    const send = requestsTo(service, 'placement 2.7');
    await makeProvider(send, host, { VCPU: { total: 100 }, PGPU: { total: 100 } });
    const claim: Claim = (resources, options = {}) => {
      const { uuid = randomUUID(), project = 'ci', type = 'JOB', generation = null, version } = options;
      const body = {
        allocations: Object.keys(resources).length === 0 ? {} : { [host]: { resources } },
        project_id: project,
        user_id: 'ada',
        consumer_type: type,
        consumer_generation: generation,
      };
      return send('PUT', `/allocations/${uuid}`, body, version);
    };
    const used: Used = async (project = 'ci') => {
      const { json } = accepted(await send('GET', `/limits/${project}`));
      const shown = { ...(at(json, 'resources') as object), ...(at(json, 'consumers') as object) };
      return Object.fromEntries(Object.entries(shown).map(([name, value]) => [name, at(value, 'used')]));
    };
    await use({ send, service, claim, used });
  });
}

const limit = (send: Send, values: object, project = 'ci', generation: number | null = null): Promise<Answer> =>
  send('PUT', `/limits/${project}`, { ...values, generation });

function refused(answer: Answer, detail: RegExp): void {
  assert.equal(answer.status, 403, answer.text);
  assert.equal(at(answer.json, 'errors', 0, 'code'), 'placement.limit_exceeded');
  assert.match(String(at(answer.json, 'errors', 0, 'detail')), detail);
}

for (const engine of engines) {
  test(`${engine}: a claim that exceeds a limit is refused: the detail names project, class, limit and amounts`, async () => {
    await withHost(engine, async ({ send, claim, used }) => {
      const set = accepted(await limit(send, { resources: { PGPU: 20 }, consumers: { all: 3, BUILD: 1 } }));
      assert.deepEqual(set.json, {
        project_id: 'ci',
        resources: { PGPU: { limit: 20, used: 0, from: 'project' } },
        consumers: { BUILD: { limit: 1, used: 0, from: 'project' }, all: { limit: 3, used: 0, from: 'project' } },
        generation: 1,
      });
      accepted(await claim({ PGPU: 18 }));
      refused(
        await claim({ PGPU: 4 }),
        /Project 'ci' is limited to 20 of PGPU: it has 18, and the request asks for 4 more\./,
      );
      accepted(await claim({ PGPU: 2 }));
      accepted(await claim({ VCPU: 2 }, { type: 'BUILD' }));
      refused(
        await claim({ VCPU: 2 }, { type: 'BUILD' }),
        /limited to (3 consumers: it has 3|1 consumers of type BUILD: it has 1), and/,
      );
      refused(await claim({ VCPU: 2 }), /limited to 3 consumers: it has 3, and the request asks for 1 more/);
      accepted(await claim({ VCPU: 2 }, { project: 'web' }));
      assert.deepEqual(await used(), { PGPU: 20, BUILD: 1, all: 3 });
    });
  });

  test(`${engine}: usage from before the first limit counts; claims that do not raise it are allowed above the limit`, async () => {
    await withHost(engine, async ({ send, claim, used }) => {
      const [large, small] = [randomUUID(), randomUUID()];
      accepted(await claim({ PGPU: 10, VCPU: 1 }, { uuid: large }));
      accepted(await claim({ PGPU: 5 }, { uuid: small }));
      accepted(await limit(send, { resources: { PGPU: 8 } }));
      assert.deepEqual(await used(), { PGPU: 15 });
      refused(await claim({ PGPU: 1 }), /limited to 8 of PGPU: it has 15, and the request asks for 1 more/);
      refused(await claim({ PGPU: 11 }, { uuid: large, generation: 1 }), /it has 15, and the request asks for 1 more/);
      accepted(await claim({ PGPU: 10, VCPU: 3 }, { uuid: large, generation: 1 }));
      accepted(await claim({ PGPU: 4 }, { uuid: large, generation: 2 }));
      assert.deepEqual(await used(), { PGPU: 9 });
      accepted(await send('DELETE', `/allocations/${small}`));
      assert.deepEqual(await used(), { PGPU: 4 });
      accepted(await claim({ PGPU: 4 }));
      refused(await claim({ PGPU: 1 }), /it has 8/);
    });
  });

  test(`${engine}: a POST is judged by the sum of its changes, and a change of owner by the usage that it moves`, async () => {
    await withHost(engine, async ({ send, claim, used }) => {
      const [first, second, third] = [randomUUID(), randomUUID(), randomUUID()];
      accepted(await limit(send, { resources: { PGPU: 10 }, consumers: { all: 2 } }));
      accepted(await claim({ PGPU: 10 }, { uuid: first }));
      const held = (amount: number, consumer_generation: number | null) => ({
        allocations: amount === 0 ? {} : { [host]: { resources: { PGPU: amount } } },
        project_id: 'ci',
        user_id: 'ada',
        consumer_type: 'JOB',
        consumer_generation,
      });
      accepted(await send('POST', '/allocations', { [first]: held(4, 1), [second]: held(6, null) }));
      refused(
        await send('POST', '/allocations', { [first]: held(5, 2), [second]: held(6, 1) }),
        /it has 10, and the request asks for 1 more/,
      );
      refused(
        await send('POST', '/allocations', { [first]: held(3, 2), [third]: held(1, null) }),
        /limited to 2 consumers: it has 2, and the request asks for 1 more/,
      );
      accepted(await send('POST', '/allocations', { [first]: held(0, 2), [third]: held(4, null) }));
      assert.deepEqual(await used(), { PGPU: 10, all: 2 });

      const guest = randomUUID();
      accepted(await claim({ PGPU: 1 }, { uuid: guest, project: 'web' }));
      const owner = { project_id: 'ci', user_id: 'ada', consumer_type: 'JOB', consumer_generation: 1 };
      refused(await send('PUT', `/consumers/${guest}`, owner), /it has 10, and the request asks for 1 more/);
      refused(await claim({ PGPU: 1 }, { uuid: guest, generation: 1 }), /it has 10/);
      // A rewrite below 1.28 also changes the owner of the consumer, and names no generation.
      const old = { allocations: { [host]: { resources: { PGPU: 1 } } }, project_id: 'ci', user_id: 'ada' };
      const below = await send('PUT', `/allocations/${guest}`, old, 'placement 1.27');
      assert.equal(below.status, 403, below.text);
      assert.equal(at(below.json, 'errors', 0, 'code'), 'placement.undefined_code');
      const without = await send('PUT', `/allocations/${guest}`, old, 'placement 1.22');
      assert.deepEqual([without.status, at(without.json, 'errors', 0, 'code')], [403, undefined]);
      accepted(await send('DELETE', `/allocations/${third}`));
      accepted(await send('PUT', `/consumers/${guest}`, owner));
      assert.deepEqual(await used(), { PGPU: 7, all: 2 });
      accepted(await send('PUT', `/consumers/${guest}`, { ...owner, project_id: 'web', consumer_generation: 2 }));
      assert.deepEqual(await used(), { PGPU: 6, all: 1 });
    });
  });

  test(`${engine}: claims by query, dry runs and terms`, async () => {
    await withHost(engine, async ({ send, claim, used }) => {
      accepted(await limit(send, { resources: { PGPU: 10 } }));
      const place = (amount: number, more: object = {}) =>
        send('PUT', `/allocations/${randomUUID()}`, {
          candidates: `resources=PGPU:${amount}`,
          project_id: 'ci',
          user_id: 'ada',
          consumer_type: 'JOB',
          consumer_generation: null,
          ...more,
        });
      accepted(await place(6, { dry_run: true }));
      accepted(await place(6, { expires_in: 1 }));
      refused(await place(6), /it has 6, and the request asks for 6 more/);
      refused(await place(6, { dry_run: true }), /it has 6, and the request asks for 6 more/);
      // The limit comes before the room, and after generations.
      refused(await place(200), /limited to 10 of PGPU: it has 6, and the request asks for 200 more/);
      refused(await place(200, { dry_run: true }), /it has 6, and the request asks for 200 more/);
      refused(await claim({ PGPU: 200 }), /it has 6, and the request asks for 200 more/);
      assert.equal((await claim({ PGPU: 200 }, { generation: 7 })).status, 409);
      assert.equal((await place(200, { project_id: 'web' })).status, 409);
      await until('the term has ended', async () => (await used()).PGPU === 0);
      accepted(await place(10));
    });
  });

  test(`${engine}: defaults, values that lift them, types that do not count, and limits of classes that do not exist`, async () => {
    await withHost(engine, async ({ send, claim, used }) => {
      accepted(
        await send('PUT', '/default_limits', { resources: { PGPU: 2 }, consumers: { JOB: 5 }, generation: null }),
      );
      refused(await claim({ PGPU: 3 }), /limited to 2 of PGPU: it has 0, and the request asks for 3 more/);
      accepted(await claim({ PGPU: 2 }));
      assert.deepEqual(at((await send('GET', '/limits/ci')).json, 'resources'), {
        PGPU: { limit: 2, used: 2, from: 'default' },
      });
      accepted(await limit(send, { resources: { PGPU: null } }));
      accepted(await claim({ PGPU: 30 }));
      const shown = (await send('GET', '/limits/ci')).json;
      assert.deepEqual(shown, {
        project_id: 'ci',
        resources: { PGPU: { limit: null, used: 32, from: 'project' } },
        consumers: { JOB: { limit: 5, used: 2, from: 'default' } },
        generation: 1,
      });
      // What is shown may be sent back: defaults do not become values of the project.
      assert.deepEqual(accepted(await send('PUT', '/limits/ci', shown)).json, { ...(shown as object), generation: 2 });
      accepted(await limit(send, { resources: { PGPU: 32 }, consumers: { MIGRATION: 1 } }, 'ci', 2));
      accepted(await claim({ PGPU: 4 }, { type: 'MIGRATION' }));
      refused(await claim({ PGPU: 4 }), /it has 32/);
      assert.deepEqual(await used(), { PGPU: 32, JOB: 2, MIGRATION: 0 });

      const rename = (from: string, name: string) =>
        send('PUT', `/resource_classes/${from}`, { name }, 'placement 1.6');
      accepted(await send('PUT', '/resource_classes/CUSTOM_A'));
      accepted(await limit(send, { resources: { CUSTOM_A: 1 } }, 'x'));
      accepted(await rename('CUSTOM_A', 'CUSTOM_B'));
      const renamed = (await send('GET', '/limits/x')).json;
      assert.deepEqual(Object.keys(at(renamed, 'resources') as object), ['CUSTOM_B', 'PGPU']);
      accepted(await send('DELETE', '/resource_classes/CUSTOM_B'));
      assert.deepEqual((await send('GET', '/limits/x')).json, renamed);
      accepted(await send('PUT', '/limits/x', renamed));
      accepted(await send('PUT', '/resource_classes/CUSTOM_B'));
      const { json } = await send('GET', `/resource_providers/${host}/inventories`);
      const inventories = { ...(at(json, 'inventories') as object), CUSTOM_B: { total: 9 } };
      const generation = at(json, 'resource_provider_generation');
      accepted(
        await send('PUT', `/resource_providers/${host}/inventories`, {
          resource_provider_generation: generation,
          inventories,
        }),
      );
      refused(await claim({ CUSTOM_B: 2 }, { project: 'x' }), /limited to 1 of CUSTOM_B/);
    });
  });
}

test('writes of other programs count for limits, and are not refused', async () => {
  await withHost(anyEngine, async ({ send, service, claim, used }) => {
    const { kysely } = service.database;
    const [mine, old] = [randomUUID(), randomUUID()];
    accepted(await limit(send, { resources: { PGPU: 10 }, consumers: { all: 5 } }));
    accepted(await claim({ PGPU: 4 }, { uuid: mine }));
    const classId = sql`(select id from resource_classes where name = 'PGPU')`;
    const allocate = (consumer: string, amount: number) =>
      sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
        select id, ${classId}, ${consumer}, ${amount} from resource_providers where uuid = ${host}`.execute(kysely);
    await sql`insert into consumers (uuid, project_id, user_id, generation) select ${old}, project_id, user_id, 0 from consumers`.execute(
      kysely,
    );
    await allocate(old, 5);
    refused(await claim({ PGPU: 2 }), /it has 9, and the request asks for 2 more/);
    await allocate(old, 5);
    assert.deepEqual(await used(), { PGPU: 14, all: 2 });
    await sql`with gone as (delete from allocations where consumer_id = ${old} returning consumer_id)
      delete from consumers where uuid in (select consumer_id from gone)`.execute(kysely);
    assert.deepEqual(await used(), { PGPU: 4, all: 1 });
    await sql`insert into projects (external_id) values ('web')`.execute(kysely);
    await sql`update consumers set project_id = (select id from projects where external_id = 'web')`.execute(kysely);
    assert.deepEqual(await used(), { PGPU: 0, all: 0 });
    await sql`update allocations set used = used + 1`.execute(kysely);
    accepted(await limit(send, { resources: { PGPU: 10 } }, 'web'));
    assert.deepEqual(await used('web'), { PGPU: 5 });
    await sql`truncate allocations`.execute(kysely);
    assert.deepEqual(await used('web'), { PGPU: 0 });
  });
});

test('old allocations without a consumer record count for the configured project, also when they get a record', async () => {
  await withHost(anyEngine, async ({ send, service, claim, used }) => {
    const nobody = '00000000-0000-0000-0000-000000000000';
    const old = randomUUID();
    accepted(await claim({ VCPU: 1 }));
    accepted(await limit(send, { resources: { PGPU: 10 } }));
    accepted(await limit(send, { resources: { PGPU: 10 } }, nobody));
    await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
      select id, (select id from resource_classes where name = 'PGPU'), ${old}, 6 from resource_providers`.execute(
      service.database.kysely,
    );
    assert.deepEqual(await used(nobody), { PGPU: 6 });
    refused(await claim({ PGPU: 5 }, { project: nobody }), /it has 6, and the request asks for 5 more/);
    accepted(await claim({ PGPU: 6 }));
    const owner = { project_id: 'ci', user_id: 'ada', consumer_type: 'JOB', consumer_generation: null };
    refused(await send('PUT', `/consumers/${old}`, owner), /it has 6, and the request asks for 6 more/);
    accepted(await send('PUT', `/consumers/${old}`, { ...owner, project_id: 'web' }));
    assert.deepEqual(await used(nobody), { PGPU: 0 });
  });
});

test('a record that another program makes or deletes for a consumer with allocations changes what its project uses', async () => {
  await withHost(anyEngine, async ({ send, service, claim, used }) => {
    const { kysely } = service.database;
    const old = randomUUID();
    accepted(await limit(send, { resources: { PGPU: 10 }, consumers: { all: 5 } }));
    accepted(await claim({ PGPU: 1 }));
    await sql`insert into allocations (resource_provider_id, resource_class_id, consumer_id, used)
      select id, (select id from resource_classes where name = 'PGPU'), ${old}, 6 from resource_providers`.execute(
      kysely,
    );
    assert.deepEqual(await used(), { PGPU: 1, all: 1 });
    await sql`insert into consumers (uuid, project_id, user_id, generation)
      select ${old}, project_id, user_id, 0 from consumers`.execute(kysely);
    assert.deepEqual(await used(), { PGPU: 7, all: 2 });
    refused(await claim({ PGPU: 4 }), /it has 7, and the request asks for 4 more/);
    await sql`delete from consumers where uuid = ${old}`.execute(kysely);
    assert.deepEqual(await used(), { PGPU: 1, all: 1 });
  });
});

for (const engine of engines) {
  test(`${engine}: without the last limit the counting stops, and the next first limit counts again`, async () => {
    await withHost(engine, async ({ send, service, claim, used }) => {
      const rows = async () =>
        (await sql<{ count: number }>`select count(*)::integer from project_usages`.execute(service.database.kysely))
          .rows[0]?.count;
      accepted(await limit(send, { resources: { PGPU: 10 } }));
      accepted(await claim({ PGPU: 4 }));
      assert.equal(await rows(), 1);
      accepted(await send('DELETE', '/limits/ci'));
      assert.equal(await rows(), 0);
      accepted(await claim({ PGPU: 8 }));
      assert.equal(await rows(), 0);
      accepted(await limit(send, { resources: { PGPU: 13 } }));
      assert.deepEqual(await used(), { PGPU: 12 });
      refused(await claim({ PGPU: 2 }), /it has 12/);
    });
  });
}

test('the rows of usages stay few', async () => {
  await withHost(anyEngine, async ({ send, service, claim, used }) => {
    accepted(await limit(send, { resources: { VCPU: 100 } }));
    for (let count = 0; count < 60; count += 1) accepted(await claim({ VCPU: 1 }));
    const rows = async () =>
      (await sql<{ count: number }>`select count(*)::integer from project_usages`.execute(service.database.kysely))
        .rows[0]?.count ?? 0;
    await until('the rows are added up', async () => (await rows()) < 12);
    assert.deepEqual(await used(), { VCPU: 60 });
  });
});

test('allocations that another program deleted do not count for the next claim, also where the claim would exceed the limit with them', async () => {
  await withHost(anyEngine, async ({ send, service, claim }) => {
    accepted(await limit(send, { resources: { PGPU: 10 } }));
    const uuid = randomUUID();
    accepted(await claim({ PGPU: 8 }, { uuid }));
    const remove = sql`with gone as (delete from allocations where consumer_id = ${uuid}) delete from consumers where uuid = ${uuid}`;
    await remove.execute(service.database.kysely);
    accepted(await claim({ PGPU: 4 }));
    refused(await claim({ PGPU: 8 }), /it has 4, and the request asks for 8 more/);
  });
});

test('a consumer counts by whichever of its queries it is placed, whether there is room yet or not', async () => {
  await withHost(anyEngine, async ({ send }) => {
    accepted(await limit(send, { consumers: { all: 0 } }));
    const owner = { project_id: 'ci', user_id: 'ada', consumer_generation: null, consumer_type: 'JOB' };
    const candidates = ['resources=VCPU:1000', 'resources=PGPU:1000'];
    const answer = await send('PUT', `/allocations/${randomUUID()}`, { candidates, ...owner });
    refused(answer, /limited to 0 consumers: it has 0, and the request asks for 1 more/);
    // A limit of a class that only one of them takes does not keep it from being placed by the other one.
    accepted(await limit(send, { resources: { VCPU: 0 } }, 'ci', 1));
    const { json } = await send('PUT', `/allocations/${randomUUID()}`, { candidates, ...owner });
    assert.equal(at(json, 'errors', 0, 'code'), 'placement.no_candidates');
  });
});

test('a claim with a wrong generation is refused for that, whether it exceeds a limit or not, also in a dry run', async () => {
  await withHost(anyEngine, async ({ send }) => {
    accepted(await limit(send, { consumers: { all: 0 } }));
    const owner = { project_id: 'ci', user_id: 'ada', consumer_generation: 5, consumer_type: 'JOB' };
    for (const dry of [false, true]) {
      const body = { candidates: 'resources=VCPU:1', dry_run: dry, ...owner };
      const { json } = await send('PUT', `/allocations/${randomUUID()}`, body);
      assert.equal(at(json, 'errors', 0, 'code'), 'placement.concurrent_update');
    }
  });
});

/** Calls back while a transaction of another program writes consumers. */
async function whileOthersWrite<T>({ database }: PlacementService, use: () => Promise<T>): Promise<T> {
  const { promise: isOver, resolve: end } = Promise.withResolvers<void>();
  const { promise: hasBegun, resolve: begun } = Promise.withResolvers<void>();
  const other = database.unlimited.transaction().execute(async (trx) => {
    await sql`update consumers set updated_at = updated_at`.execute(trx);
    begun();
    await isOver;
  });
  await Promise.race([hasBegun, other]);
  try {
    return await use();
  } finally {
    end();
    await other;
  }
}

test('a first limit that is not stored leaves no counting behind', async () => {
  const placementDatabase = { statementTimeout: 1 };
  await withTestService('postgresql', { placementDatabase }, async (service) => {
    const send = requestsTo(service, 'placement 2.7');
    await makeProvider(send, host, { VCPU: { total: 100 } });
    const { kysely } = service.database;
    const answer = await whileOthersWrite(service, () => limit(send, { resources: { VCPU: 1 } }));
    assert.deepEqual([answer.status, answer.headers.get('retry-after')], [503, '10']);
    const { rows } = await sql`select from usage_counting`.execute(kysely);
    assert.equal(rows.length, 0);
    accepted(await limit(send, { resources: { VCPU: 1 } }));
  });
});

test('the first limit does not wait for writes of another database of the server', async () => {
  const placementDatabase = { statementTimeout: 1 };
  // Both are copies of one database, so that their tables have the same numbers.
  await withTestService('postgresql', {}, (other) =>
    withTestService('postgresql', { placementDatabase }, async (service) => {
      const send = requestsTo(service, 'placement 2.7');
      accepted(await whileOthersWrite(other, () => limit(send, { resources: { VCPU: 1 } })));
    }),
  );
});

test('if a first limit is not stored, the counting stops, at once or some minutes later', async () => {
  const placementDatabase = { statementTimeout: 1 };
  await withTestService('postgresql', { placementDatabase }, async (service) => {
    const send = requestsTo(service, 'placement 2.7');
    const { kysely, unlimited } = service.database;
    const countings = async (): Promise<number> => (await sql`select from usage_counting`.execute(kysely)).rows.length;
    await unlimited.transaction().execute(async (trx) => {
      // As claims of all projects hold them.
      await sql`select pg_advisory_xact_lock_shared(1460000, key) from generate_series(0, 1023) as key`.execute(trx);
      assert.equal((await limit(send, { resources: { VCPU: 1 } })).status, 503);
    });
    assert.equal(await countings(), 0);
    const begun = (minutes: number) =>
      sql`insert into usage_counting (since, is_counted)
      values ((now() at time zone 'utc') - make_interval(mins => ${minutes}), true)`.execute(kysely);
    await begun(1);
    await endCountingWithoutLimits(service.database);
    assert.equal(await countings(), 1, 'its limit may be stored at this moment');
    await sql`delete from usage_counting`.execute(kysely);
    await begun(6);
    await until('the process ends it', async () => (await countings()) === 0);
  });
});
