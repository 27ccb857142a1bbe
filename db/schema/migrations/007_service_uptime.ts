import { type Kysely, sql } from 'kysely';

/** How long the machine of a service has been up, as its agent reports it; null if the agent does not. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table services add column uptime varchar(255)`.execute(db);
}
