/** Ids run out under load: warnings come before, claims are refused with the reason, and the remedy works while the service serves. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { test } from 'node:test';
import { sql } from 'kysely';
import { pino } from 'pino';
import { openDatabase } from '../../db/engine/connect.ts';
import { onlineMigrations, runBatch } from '../../db/online/run.ts';
import { compareFleet } from '../../src/fleet/keep/comparison.ts';
import { openIdWatch } from '../../src/metrics/id_watch.ts';
import { openService } from '../../src/start/service.ts';
import { followFrom } from '../changes/follow.ts';
import { countLacking } from '../etags/old_rows.ts';
import { type TestDatabase, withFreshDatabase } from '../support/engines.ts';
import { accepted, at, makeProvider, newClaim, requestsTo } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';

/** Opens a process of the service; `lines` gets the texts of its log. */
async function openProcess({ config }: TestDatabase) {
  const lines: string[] = [];
  const logger = pino({}, { write: (line: string) => void lines.push(JSON.parse(line).msg) });
  const service = await openService(testConfig({ placementDatabase: config }), { logger });
  const send = requestsTo(service, 'placement 2.6');
  const used = async (table: string): Promise<number> => {
    const { text } = await send('GET', '/metrics');
    return Number(new RegExp(`^placement_ids_used_ratio{table="${table}"} (\\S+)$`, 'm').exec(text)?.[1]);
  };
  return { service, lines, send, used };
}

/** The statements that lines of the log name as the remedy. */
const remediesIn = (lines: readonly string[]): readonly string[] =>
  lines.flatMap((line) => /alter sequence .*/.exec(line)?.[0] ?? []);

test('claims are a 503 when the ids are used up, and are written again after the remedy, without a restart', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const other = await openDatabase(database.settings);
    const run = async <Row>(text: string): Promise<readonly Row[]> =>
      (await sql.raw<Row>(text).execute(other.kysely)).rows;
    await run("select setval('allocations_id_seq', 2147483647 - 300), setval('consumers_id_seq', 2147483647 - 150)");
    const [first, second] = [await openProcess(database), await openProcess(database)];
    try {
      const remedies = remediesIn(first.lines);
      assert.equal(remedies.length, 2, first.lines.join('\n'));
      for (const table of ['allocations', 'consumers']) assert.ok((await first.used(table)) > 0.99);
      assert.ok((await first.used('traits')) < 0.01);

      const hosts = [randomUUID(), randomUUID(), randomUUID()];
      for (const host of hosts) await makeProvider(first.send, host, { VCPU: { total: 1_000_000 } });
      const feed = await followFrom(second.send);
      await feed();
      const claim = newClaim(Object.fromEntries(hosts.map((host) => [host, { VCPU: 1 }])));
      const counts = new Map<number, number>();
      const held: string[] = [];
      let isOver = false;
      const work = async (index: number): Promise<void> => {
        const { send } = index % 2 === 0 ? first : second;
        while (!isOver) {
          const uuid = randomUUID();
          const answer = await send('PUT', `/allocations/${uuid}`, claim);
          counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1);
          if (answer.status === 204) held.push(uuid);
          else assert.match(answer.text, /no id left for a new row: nextval: .* \\"(allocations|consumers)_id_seq/);
          assert.ok([204, 503].includes(answer.status), answer.text);
          if (index === 0 && held.length > 40) accepted(await send('DELETE', `/allocations/${held.shift()}`));
        }
      };
      const workers = Promise.all([0, 1, 2, 3].map(work));
      const reached = (status: number, count: number) => async () => {
        await Promise.race([workers, new Promise((end) => setTimeout(end, 20))]); // a failure of a worker ends the test
        return (counts.get(status) ?? 0) >= count;
      };
      await until('the ids are used up', reached(503, 20));
      const written = counts.get(204) ?? 0;
      assert.ok(written > 0);
      // What needs no id is done meanwhile.
      const emptied = { ...claim, allocations: {}, consumer_generation: 1 };
      for (let time = 0; time < 5; time++) accepted(await second.send('PUT', `/allocations/${held.pop()}`, emptied));
      for (const remedy of remedies) await run(remedy);
      await until('claims go on', reached(204, written + 200));
      isOver = true;
      await workers;

      const [ids] = await run<{ allocation: number; consumer: number; type: string }>(
        `select (select min(id) from allocations) as allocation, (select min(id) from consumers) as consumer,
          (select string_agg(distinct data_type, ' ') from information_schema.columns
            where table_name in ('allocations', 'consumers') and column_name = 'id' and table_schema = current_schema()) as type`,
      );
      // OpenStack Placement reads these columns as integers.
      assert.ok(
        ids !== undefined && ids.allocation < -2_000_000_000 && ids.consumer < -2_000_000_000 && ids.type === 'integer',
      );
      const changed = ((await feed()) as readonly unknown[]).map((event) => at(event, 'resource_provider')); // a list, as the API says
      assert.deepEqual(new Set(changed), new Set(hosts));
      for (const { service, send } of [first, second]) {
        assert.equal(await compareFleet(service.database, service.fleet), undefined);
        const usages = (await send('GET', `/resource_providers/${hosts[0]}/usages`)).json;
        assert.equal(at(usages, 'usages', 'VCPU'), held.length);
      }
      const [last = ''] = held.slice(-1);
      const renewed = { ...claim, consumer_generation: 1 };
      accepted(await first.send('PUT', `/allocations/${last}`, renewed));

      await run("select set_config('placement.etags', 'only', false)");
      await run('update consumers set etag = null');
      const migrations = onlineMigrations(other, { projectId: 'p', userId: 'u' });
      const left = async () => (await runBatch(migrations, 50)).reduce((sum, { done }) => sum + done, 0);
      while ((await left()) > 0);
      assert.equal(await countLacking(other), 0);

      const third = await openProcess(database);
      assert.deepEqual(remediesIn(third.lines), []);
      assert.ok((await third.used('allocations')) < 0.01);
      await third.service.close();
    } finally {
      await Promise.all([first.service.close(), second.service.close(), other.close()]);
    }
  });
});

test('each threshold of the ids is logged once, and again after a remedy', async () => {
  await withFreshDatabase('postgresql', async (database) => {
    const other = await openDatabase(database.settings);
    const run = (text: string) => sql.raw(text).execute(other.kysely);
    try {
      const lines: string[] = [];
      const watch = openIdWatch(other, {
        logger: { info: () => {}, warn: (line: unknown) => void lines.push(String(line)) },
        outages: { notice: () => false, answered: () => {} },
      });
      const warningsAt = async (last: number): Promise<number> => {
        lines.length = 0;
        await run(`select setval('consumers_id_seq', ${last})`);
        await watch.check();
        await watch.check();
        return lines.length;
      };
      assert.equal(await warningsAt(1_000_000_000), 0);
      assert.equal(await warningsAt(1_100_000_000), 1);
      assert.equal(await warningsAt(1_200_000_000), 0);
      assert.equal(await warningsAt(2_147_483_000), 1);
      assert.match(lines.join('\n'), /^Table consumers is running out of ids: it has used 99 %/);
      assert.equal(await warningsAt(5), 0);
      assert.equal(await warningsAt(1_700_000_000), 1);
      await watch.close();
    } finally {
      await other.close();
    }
  });
});
