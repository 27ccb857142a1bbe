/** Terms while other programs write to the same tables, or processes are killed. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import pg from 'pg';
import { pino } from 'pino';
import { startServer } from '../races/server_process.ts';
import { waitingCount } from '../races/two_connections.ts';
import { freshDatabase, type TestDatabase, withFreshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo, type Send } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { until } from '../support/until.ts';

const version = 'placement 2.6';
const host = '00000000-0000-4000-8000-0000000000aa';

type World = { readonly send: Send; readonly other: pg.Client; claim(seconds?: number): Promise<string> };

/** A service on PostgreSQL with one host, and a connection of another program. */
async function withOther(use: (world: World) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async (database) => {
    const service = await openServiceOn(database);
    const other = new pg.Client({ connectionString: connectionOf(database) });
    await other.connect();
    try {
      const send = requestsTo(service, version);
      await makeProvider(send, host, { VCPU: { total: 100 } });
      await use({ send, other, claim: (seconds) => claimFor(send, seconds) });
    } finally {
      await other.end();
      await service.close();
    }
  });
}

const connectionOf = ({ config }: TestDatabase): string => config.connection ?? '';

/** @returns a new consumer, with a term if there are seconds */
async function claimFor(send: Send, seconds?: number): Promise<string> {
  const consumer = randomUUID();
  const term = seconds === undefined ? {} : { expires_in: seconds };
  accepted(await send('PUT', `/allocations/${consumer}`, { ...newClaim({ [host]: { VCPU: 1 } }), ...term }));
  return consumer;
}

const isThere = async (send: Send, consumer: string): Promise<boolean> =>
  at((await send('GET', `/allocations/${consumer}`)).json, 'consumer_generation') !== undefined;

const termsOf = async (other: pg.Client): Promise<number> =>
  (await other.query('select from consumer_terms')).rowCount ?? 0;

/** As OpenStack Placement replaces allocations. */
const rewrittenByUpstream = (consumer: string): string => `begin;
  delete from allocations where consumer_id = '${consumer}';
  insert into allocations (created_at, resource_provider_id, resource_class_id, consumer_id, used)
    select now(), id, 0, '${consumer}', 2 from resource_providers;
  update resource_providers set generation = generation + 1;
  update consumers set updated_at = now(), generation = generation + 1 where uuid = '${consumer}';
  commit`;

const deletedByUpstream = (consumer: string): string =>
  `delete from allocations where consumer_id = '${consumer}'; delete from consumers where uuid = '${consumer}'`;

/** As OpenStack Placement claims for a new consumer. */
const claimedByUpstream = (consumer: string): string => `begin;
  insert into consumers (created_at, uuid, project_id, user_id, generation)
    select now(), '${consumer}', p.id, u.id, 1 from projects p, users u;
  insert into allocations (created_at, resource_provider_id, resource_class_id, consumer_id, used)
    select now(), id, 0, '${consumer}', 2 from resource_providers;
  commit`;

test('a consumer that another program rewrites, or deletes and claims again, has no term', async () => {
  await withOther(async ({ send, other, claim }) => {
    const [rewritten, again, kept] = [await claim(1), await claim(1), await claim(1)];
    await other.query(rewrittenByUpstream(rewritten));
    await other.query(deletedByUpstream(again));
    assert.equal(await termsOf(other), 2, 'the term is gone with the consumer');
    await other.query(claimedByUpstream(again));
    for (const consumer of [rewritten, again]) {
      assert.equal(at((await send('GET', `/consumers/${consumer}`)).json, 'expires_at'), null);
    }
    const last = await claim(1);
    for (const ending of [kept, last]) await until('it has ended', async () => !(await isThere(send, ending)));
    assert.ok((await isThere(send, rewritten)) && (await isThere(send, again)));
    const usages = await send('GET', `/resource_providers/${host}/usages`);
    assert.equal(at(usages.json, 'usages', 'VCPU'), 4);
    await until('the term that did not hold is gone', async () => (await termsOf(other)) === 0);
  });
});

test('a locked consumer does not delay the removal of others, and is removed when the lock is released', async () => {
  await withOther(async ({ send, other, claim }) => {
    const locked = await claim(1);
    const withLockedAllocation = await claim(1);
    await other.query('begin');
    await other.query(`select from consumers where uuid = '${locked}' for update`);
    await other.query(`select from allocations where consumer_id = '${withLockedAllocation}' for update`);
    const free = await claim(1);
    await until('the free one is removed', async () => !(await isThere(send, free)));
    for (const consumer of [locked, withLockedAllocation]) {
      assert.ok(await isThere(send, consumer));
      // After its end a renewal or a change is refused at once, without a wait for the lock.
      assert.equal((await send('GET', `/consumers/${consumer}`)).status, 404);
      const term = { expires_in: 60, consumer_generation: 1 };
      const renewal = await send('PUT', `/consumers/${consumer}/term`, term);
      assert.equal(renewal.status, 404, renewal.text);
      assert.match(renewal.text, /its term has expired/);
      const change = { project_id: 'q', user_id: 'u', consumer_type: 'X', consumer_generation: 1 };
      assert.equal((await send('PUT', `/consumers/${consumer}`, change)).status, 404);
      assert.equal((await send('GET', `/consumers/${consumer}`, undefined, 'placement 2.5')).status, 200);
    }
    const listed = await send('GET', `/consumers?expiring_before=${new Date().toISOString()}`);
    assert.equal((at(listed.json, 'consumers') as unknown[]).length, 2); // as openapi.yaml says
    assert.equal(at((await send('GET', `/resource_providers/${host}/usages`)).json, 'usages', 'VCPU'), 2);
    const overdueSeconds = async (): Promise<number> =>
      Number(/^placement_terms_overdue_seconds (\S+)$/m.exec((await send('GET', '/metrics')).text)?.[1]);
    await until('/metrics tells how long they are overdue', async () => (await overdueSeconds()) > 2);
    await other.query('commit');
    for (const consumer of [locked, withLockedAllocation]) {
      await until('it is removed', async () => !(await isThere(send, consumer)));
    }
    await until('nothing is overdue', async () => (await overdueSeconds()) < 2);
  });
});

test('a renewal that waits for the lock of the record until the term has expired is refused', async () => {
  await withOther(async ({ send, other, claim }) => {
    const consumer = await claim(1);
    await other.query('begin');
    await other.query(`select from consumers where uuid = '${consumer}' for update`);
    const renewal = send('PUT', `/consumers/${consumer}/term`, { expires_in: 60, consumer_generation: 1 });
    const last = await claim(1);
    await until('the end is reached', async () => !(await isThere(send, last)));
    await other.query('commit');
    assert.equal((await renewal).status, 404);
    await until('it is removed', async () => !(await isThere(send, consumer)));
  });
});

test('another process removes expired consumers after a process was killed during the removal', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const [first, second] = [await startServer(database.config), await startServer(database.config)];
    const service = await openServiceOn(database);
    const send = requestsTo(service, version);
    await makeProvider(send, host, { VCPU: { total: 10_000 } });
    const claims = Object.fromEntries(
      Array.from({ length: 400 }, () => [randomUUID(), { ...newClaim({ [host]: { VCPU: 1 } }), expires_in: 1 }]),
    );
    const other = new pg.Client({ connectionString: connectionOf(database) });
    await other.connect();
    const left = async (): Promise<number> => (await other.query('select from consumers')).rowCount ?? 0;
    try {
      accepted(await send('POST', '/allocations', claims));
      await service.close();
      // Each removal waits for this table, and fails after a short time.
      await other.query('begin; lock table provider_changes in share mode');
      await until('a removal waits', async () => (await waitingCount(other)) > 0);
      await first.kill();
      assert.equal(await left(), 400);
      await other.query('commit');
      await until('all are removed', async () => (await left()) === 0);
      assert.equal((await other.query('select from allocations')).rowCount, 0);
    } finally {
      await other.end();
      await first.kill();
      await second.kill();
    }
  });
});

test('each removal is a line of the log, and counts in the metrics', async () => {
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(line) });
  const database = await freshDatabase('embedded');
  const service = await openServiceOn(database, {}, { logger });
  try {
    const send = requestsTo(service, version);
    await makeProvider(send, host, { VCPU: { total: 8 } });
    const consumer = await claimFor(send, 1);
    const end = at((await send('GET', `/consumers/${consumer}`)).json, 'expires_at');
    await until('it is removed', async () => !(await isThere(send, consumer)));
    const messages = lines.map((line): { readonly msg?: string } => JSON.parse(line)).map(({ msg = '' }) => msg);
    assert.deepEqual(
      messages.filter((line) => line.startsWith('Consumer ')),
      [`Consumer ${consumer} of project p, user u was removed with 1 allocations: its term ended at ${end}.`],
    );
    assert.match((await send('GET', '/metrics')).text, /^placement_terms_ended_total 1$/m);
  } finally {
    await service.close();
    await database.drop();
  }
});
