import { readFile } from 'node:fs/promises';
import { sql } from 'kysely';
import type { Database } from '../../db/engine/connect.ts';
import { onlyRow } from '../../db/engine/only_row.ts';
import { newerMigrations, newerSchema, olderSchema, pendingMigrations } from '../../db/schema/executed_migrations.ts';
import { idProblem, readIdUse } from '../../db/schema/id_sequences.ts';
import { hasTable } from '../../db/schema/missing_table.ts';
import { isImportUnfinished, unfinishedImportProblem } from '../../db/schema/unfinished_import.ts';
import { unwatchedTablesProblem } from '../../db/schema/watched_tables.ts';

/** How a database differs from one with the schema of this release that holds a whole deployment, with the remedy. */
type SchemaProblem = {
  readonly is: 'empty' | 'older' | 'importing' | 'newer' | 'unwatched';
  readonly problem: string;
};

/** @returns undefined if the schema is up to date, and no import is unfinished */
async function schemaProblem(database: Database): Promise<SchemaProblem | undefined> {
  if (!(await hasTable(database.kysely, 'resource_providers'))) {
    return { is: 'empty', problem: 'The database has no tables yet. Run "placement-manage db sync".' };
  }
  const pending = await pendingMigrations(database);
  if (pending.length > 0) return { is: 'older', problem: olderSchema(pending) };
  if (await isImportUnfinished(database)) return { is: 'importing', problem: unfinishedImportProblem };
  const newer = await newerMigrations(database);
  if (newer.length > 0) return { is: 'newer', problem: newerSchema(newer) };
  const problem = await unwatchedTablesProblem(database);
  return problem === undefined ? undefined : { is: 'unwatched', problem };
}

/** Why a command may not write to the database, with the remedy; undefined if it may. One of a newer release may be written to. */
export async function unwritableProblem(database: Database): Promise<string | undefined> {
  const schema = await schemaProblem(database);
  return schema?.is === 'newer' ? undefined : schema?.problem;
}

/** @throws Error with this reason */
export async function refuseUnwritable(database: Database): Promise<void> {
  const problem = await unwritableProblem(database);
  if (problem !== undefined) throw new Error(problem);
}

/** The results of checks, with upstream's numbers. The highest one is the exit code. */
export const success = 0;
/** The deployment works, but something should be done. */
export const warning = 1;
/** The upgrade would fail. */
export const failure = 2;

/** The result of a check, with the remedy. */
export type CheckResult = {
  readonly check: string;
  readonly result: typeof success | typeof warning | typeof failure;
  readonly details: string | null;
};

/**
 * Checks whether a deployment is ready for an upgrade: the checks of upstream's `placement-status upgrade check` with
 * its texts, and also that the schema is up to date, that no import is unfinished, and that enough ids are left.
 *
 * @throws Error with the remedy if the database has no schema
 */
export async function checkUpgrade(database: Database, policyFile: string): Promise<readonly CheckResult[]> {
  const schema = await schemaProblem(database);
  if (schema?.is === 'empty') throw new Error(schema.problem);
  const rootless = await someProviderLacksItsRoot(database);
  const incomplete = await countIncompleteConsumers(database);
  const policyIsJson = await isJson(policyFile);
  const idUse = schema?.is === 'older' ? [] : await readIdUse(database); // an older schema may lack tables
  return [
    {
      check: 'Missing Root Provider IDs',
      result: rootless ? failure : success,
      details: rootless
        ? `There is at least one resource provider table record which misses its root provider id. ${remedy}`
        : null,
    },
    {
      check: 'Incomplete Consumers',
      result: incomplete > 0 ? warning : success,
      details:
        incomplete > 0
          ? `There are ${incomplete} incomplete consumers table records for existing allocations. ${remedy}`
          : null,
    },
    {
      check: 'Policy File JSON to YAML Migration',
      result: policyIsJson ? failure : success,
      details: policyIsJson ? policyRemedy : null,
    },
    // Upstream does not have these checks. They appear only if they fail, so that programs that parse the report of a
    // good deployment find only the checks that they know.
    ...(schema === undefined
      ? []
      : [failed(schema.is === 'importing' ? 'Unfinished Import' : 'Schema Migrations', schema.problem)]),
    ...idUse.flatMap((use) => warned(idProblem(use))),
  ];
}

const failed = (check: string, details: string): CheckResult => ({ check, result: failure, details });

/** This matters most for allocations: each write of a consumer's allocations gives them new ids. */
const warned = (details: string | undefined): readonly CheckResult[] =>
  details === undefined ? [] : [{ check: 'Ids Running Out', result: warning, details }];

const remedy = 'Run the "placement-manage db online_data_migrations" command.';
const policyRemedy =
  'The policy file is JSON, which is deprecated. "placement-manage policy list --changed" prints its rules as YAML: write them to ' +
  'a new file, and let that replace this one as policy.yaml, or as what [oslo_policy] policy_file names.';

async function someProviderLacksItsRoot({ kysely }: Database): Promise<boolean> {
  const query = sql<{ found: boolean }>`
    select exists (select from resource_providers where root_provider_id is null) as found`;
  return (await onlyRow(kysely, query)).found;
}

async function countIncompleteConsumers({ kysely }: Database): Promise<number> {
  const query = sql<{ count: number }>`
    select count(distinct consumer_id)::integer as count from allocations a
    where not exists (select from consumers c where c.uuid = a.consumer_id)`;
  return (await onlyRow(kysely, query)).count;
}

/** Whether a policy file is JSON. The file may be missing; an empty file counts as YAML. */
async function isJson(file: string): Promise<boolean> {
  try {
    JSON.parse(await readFile(file, 'utf8'));
    return true;
  } catch (error) {
    const absent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    if (absent || error instanceof SyntaxError) return false;
    throw error;
  }
}
