import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { compactUsages } from '../../db/statements/claims/project_usages.ts';
import { randomFrom, seedFor } from '../races/random.ts';
import { engines, withFreshDatabase } from '../support/engines.ts';

type Row = {
  readonly project: number | null;
  readonly type: number | null;
  readonly classes: readonly (number | null)[];
  readonly amounts: readonly number[];
};

const add = ({ kysely }: Database, rows: readonly Row[]) =>
  sql`insert into project_usages (project_id, consumer_type_id, class_ids, amounts)
    select project, type, array(select json_array_elements_text(classes)::integer), array(select json_array_elements_text(amounts)::bigint)
    from json_to_recordset(${JSON.stringify(rows)}::json) as r (project integer, type integer, classes json, amounts json)`.execute(
    kysely,
  );

async function readRows({ kysely }: Database): Promise<readonly Row[]> {
  const { rows } = await sql<Row>`
    select project_id as project, consumer_type_id as type, class_ids as classes, amounts::float8[] as amounts from project_usages`.execute(
    kysely,
  );
  return rows;
}

/** How much is used, by project, type and class, without what is 0. */
function sumsOf(rows: readonly Row[]): Readonly<Record<string, number>> {
  const sums = new Map<string, number>();
  for (const { project, type, classes, amounts } of rows) {
    for (const [index, amount] of amounts.entries()) {
      const key = JSON.stringify([project, type, classes[index]]);
      sums.set(key, (sums.get(key) ?? 0) + amount);
    }
  }
  return Object.fromEntries([...sums].filter(([, sum]) => sum !== 0).sort());
}

const countsOf = (rows: readonly Row[]): ReadonlyMap<number | null, number> =>
  new Map([...Map.groupBy(rows, ({ project }) => project)].map(([project, members]) => [project, members.length]));

for (const engine of engines) {
  test(`many rows of a project become one for each type, with the same sums: ${engine}`, async (t) => {
    const random = randomFrom(seedFor(t));
    const rowOf = (project: number | null): Row => {
      const classes = [null, 0, 1, 2].filter(() => random.percent(70));
      return {
        project,
        type: random.pick([null, 1, 2]),
        classes,
        amounts: classes.map(() => random.pick([-3, -2, -1, 1, 2, 3])),
      };
    };
    await withFreshDatabase(engine, async ({ settings }) => {
      const database = await openDatabase(settings);
      try {
        // Those without a project are of allocations without a consumer record.
        const large = [null, 1, 2, 3, 4].flatMap((project) => Array.from({ length: 40 }, () => rowOf(project)));
        const small = [5, 6].flatMap((project) => Array.from({ length: 5 }, () => rowOf(project)));
        const opposite = [1, -1].flatMap((amount) =>
          Array.from({ length: 20 }, (): Row => ({ project: 7, type: 1, classes: [0], amounts: [amount] })),
        );
        const rows = [...large, ...small, ...opposite];
        await add(database, rows);
        await compactUsages(database);
        const after = await readRows(database);
        assert.deepEqual(sumsOf(after), sumsOf(rows));
        const counts = countsOf(after);
        for (const project of [null, 1, 2, 3, 4]) assert.ok((counts.get(project) ?? 0) <= 3, `project ${project}`);
        for (const project of [5, 6]) assert.equal(counts.get(project), 5, 'few rows stay as they are');
        assert.equal(counts.get(7), undefined, 'what adds up to nothing is gone');
      } finally {
        await database.close();
      }
    });
  });
}
