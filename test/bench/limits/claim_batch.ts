import { randomUUID } from 'node:crypto';
import { sql } from 'kysely';
import { type Database, openDatabase } from '../../../db/engine/connect.ts';
import type { ClaimWrite } from '../../../db/statements/claims/claim_write.ts';
import { writeClaims } from '../../../db/statements/claims/write_claims.ts';
import { closedLoop } from '../closed_loop.ts';
import { flatHost, project, user } from '../data_set.ts';
import { loadTrees } from '../load_by_sql.ts';
import { figuresOf, type Measurement } from '../measure.ts';
import { queryOn } from '../own_server.ts';
import type { Limit } from './limit.ts';

/*
 * L4: the statement by which the service writes 16 claims, without the service, and what is left of its cost when one part after the other is
 * taken away. Rates and CPU times are those of one claim, `p50 ms` and `p99 ms` those of a statement.
 */

const [providers, inBatch] = [1000, 16];

/**
 * What is taken away in each step, beside that of the steps before: by statements, but for the sync, which only the first step has. In the last
 * one it is the indexes that the statement only keeps up for others.
 */
const steps: readonly { readonly without: string; readonly statements: readonly string[] }[] = [
  { without: '', statements: [] },
  { without: ', without a sync', statements: [] },
  {
    without: ', nor triggers',
    statements: ['allocations', 'consumers', 'resource_providers'].map(
      (table) => `alter table ${table} disable trigger user`,
    ),
  },
  {
    without: ', nor indexes of others',
    statements: [
      `do $$ declare name text; begin
          for name in select indexrelid::regclass from pg_index i join pg_attribute a on a.attrelid = indrelid and a.attnum = indkey[0]
            where indrelid = any (array['allocations', 'consumers']::regclass[]) and not indisunique and attname <> 'consumer_id'
          loop execute 'drop index ' || name; end loop; end $$`,
    ],
  },
];

/** Changes a database with our schema, which nothing else may use. @returns the limits, in the order in which they must be measured */
export function claimBatchLimits(databaseUrl: string, databasePid: number): readonly Limit[] {
  let filled: Promise<void> | undefined;
  const query = queryOn(databaseUrl);
  const unsynced = new URL(databaseUrl);
  unsynced.searchParams.set('options', '-c synchronous_commit=off');
  return [
    ...steps.map(
      ({ without }, index): Limit => ({
        name: `L4 a ${inBatch}th of a claim statement${without}`,
        run: async (durationMs) => {
          filled ??= loadTrees(query, [flatHost], providers);
          await filled;
          // Those of the steps before may not have been measured. Done again, they change nothing.
          for (const statement of steps.slice(0, index + 1).flatMap(({ statements }) => statements))
            await query(statement);
          return measureStatements(
            index === 0 ? databaseUrl : unsynced.href,
            databasePid,
            durationMs,
            openClaimBatches,
          );
        },
      }),
    ),
    {
      name: `L4 a ${inBatch}th of an empty statement`,
      run: (durationMs) =>
        measureStatements(databaseUrl, databasePid, durationMs, async ({ kysely }) => async () => {
          await sql`select 1`.execute(kysely);
        }),
    },
  ];
}

/** Runs one statement after the other on one connection. @param open gives the function that runs a statement for `inBatch` claims */
async function measureStatements(
  url: string,
  databasePid: number,
  durationMs: number,
  open: (database: Database) => Promise<() => Promise<void>>,
): Promise<Measurement> {
  const database = await openDatabase({ connection: url, maxPoolSize: 1 });
  try {
    const run = await open(database);
    await closedLoop([0], { durationMs: durationMs / 4 }, run);
    const all = await figuresOf({ pids: () => [], databasePid }, () => closedLoop([0], { durationMs }, run));
    const clientCpuMs = all.clientCpuMs / inBatch;
    return {
      ...all,
      perSecond: all.perSecond * inBatch,
      databaseCpuMs: all.databaseCpuMs / inBatch,
      clientCpuMs,
      operations: all.operations * inBatch,
      note: `${clientCpuMs.toFixed(3)} ms in this process, by Kysely and pg`,
    };
  } finally {
    await database.close();
  }
}

/** Claims of new consumers, each on another provider. */
async function openClaimBatches(database: Database): Promise<() => Promise<void>> {
  const { rows } = await sql<{ id: number; generation: number }>`
    select id, generation from resource_providers order by id`.execute(database.kysely);
  const known = rows.map(({ id, generation }) => ({ id, generation }));
  let next = 0;
  return async () => {
    const claims = Array.from({ length: inBatch }, (): ClaimWrite => {
      const provider = known[next++ % known.length] ?? { id: 0, generation: 0 };
      provider.generation += 1;
      const uuid = randomUUID();
      const allocations = [
        { providerId: provider.id, classId: 0, used: 1 },
        { providerId: provider.id, classId: 1, used: 256 },
        { providerId: provider.id, classId: 2, used: 10 },
      ];
      return {
        providers: [{ providerId: provider.id, generation: provider.generation - 1, bump: 1 }],
        consumers: [
          {
            uuid,
            generation: null,
            hasOldAllocations: false,
            projectExternalId: project,
            userExternalId: user,
            consumerType: 'INSTANCE',
            allocations,
            etag: 'W/"0123456789012345678901234567"',
          },
        ],
        inventories: [],
      };
    });
    const { lost } = await writeClaims(database, claims);
    if (lost.some((guard) => guard !== undefined)) throw new Error(`Claims lost their guards: ${lost.join(', ')}`);
  };
}
