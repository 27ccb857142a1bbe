import { type Kysely, sql } from 'kysely';

/**
 * Functions that forbid to read whole tables are not compiled (`jit`). Until PostgreSQL 17 a plan that reads a table all the same, since
 * nothing else is possible, costs 10,000,000,000 more. A server with LLVM, which most packages have, then compiled and optimised it each
 * time: 0.2 s for each claim, also for the claims of other programs, whose connections have other settings than ours.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const { rows } = await sql<{ readonly name: string }>`
    select oid::regprocedure::text as name from pg_proc
    where pronamespace = quote_ident(current_schema())::regnamespace
      and 'enable_seqscan=off' = any(proconfig) and 'jit=off' <> all(proconfig)
    order by name`.execute(db);
  for (const { name } of rows) await sql`alter function ${sql.raw(name)} set jit = off`.execute(db);
}
