import pg from 'pg';
import { type Database, openDatabase } from '../../db/engine/connect.ts';
import { type ProviderWrite, writeProviders } from '../../db/statements/providers/provider_write.ts';
import { newProviderTags } from '../../src/fleet/model/entity_tags.ts';
import { traitsTag } from '../../src/placement/entity_tag.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { until } from '../support/until.ts';

/** A database as the service uses it, and a second connection to it. The test decides when its transactions end. */
export type TwoConnections = { readonly database: Database; readonly other: pg.Client };

/** Opens a new database twice. */
export const withOtherConnection = (use: (connections: TwoConnections) => Promise<void>): Promise<void> =>
  withFreshDatabase('postgresql', async ({ settings }) => {
    if (!('connection' in settings)) throw new Error('Two connections need a PostgreSQL server.');
    const database = await openDatabase(settings);
    const other = new pg.Client({ connectionString: settings.connection });
    await other.connect();
    try {
      await use({ database, other });
    } finally {
      await other.end();
      await database.close();
    }
  });

/** The same with `providersAndOwners`. */
export const withTwoConnections = (use: (connections: TwoConnections) => Promise<void>): Promise<void> =>
  withOtherConnection(async (connections) => {
    await connections.other.query(providersAndOwners);
    await use(connections);
  });

/** Providers 1 and 2 with 10 VCPU (class 0) each, child 3 of provider 1, and the owners in claims. */
export const providersAndOwners = `
  insert into resource_providers (id, uuid, name, generation, root_provider_id, parent_provider_id)
    values (1, 'rp1', 'rp1', 5, 1, null), (2, 'rp2', 'rp2', 5, 2, null), (3, 'rp3', 'rp3', 5, 1, 1);
  select setval(pg_get_serial_sequence('resource_providers', 'id'), 100);
  insert into inventories (resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio)
    values (1, 0, 10, 0, 1, 10, 1, 1), (2, 0, 10, 0, 1, 10, 1, 1);
  insert into projects (id, external_id) values (1, 'project');
  insert into users (id, external_id) values (1, 'user');`;

/** Makes a child of one of these providers. */
export function newChild(name: string, parent: { readonly id: number; readonly uuid: string }): ProviderWrite {
  const tags = newProviderTags({ uuid: name, name, parentUuid: parent.uuid });
  return { kind: 'child', uuid: name, name, parent, tags };
}

/** Takes all traits from one of these providers, which has none. */
export const noTraits = (providerId: number): ProviderWrite => ({
  kind: 'traits',
  providerId,
  uuid: `rp${providerId}`,
  generation: 5,
  traits: [],
  present: [],
  tag: traitsTag([]),
  tagBefore: traitsTag([]),
});

/** Waits until this many connections of the database wait for a lock. */
export async function untilWaiting(other: pg.Client, count = 1): Promise<void> {
  // Without a pause between two looks, since a wait may be brief; and for as long as `until`, since a busy machine is slow.
  const deadline = Date.now() + 60_000;
  while ((await waitingCount(other)) < count)
    if (Date.now() > deadline) throw new Error('No connection waits for a lock.');
}

/** Waits until a statement of this database has waited for a lock for this long. */
export async function untilWaitingFor(other: pg.Client, ms: number): Promise<void> {
  await until(`a statement has waited ${ms} ms for a lock`, async () => {
    await other.query('select pg_stat_clear_snapshot()');
    const { rowCount } = await other.query(`select from pg_stat_activity where datname = current_database()
      and wait_event_type = 'Lock' and clock_timestamp() - query_start > ${ms} * interval '1 ms'`);
    return rowCount !== 0;
  });
}

/** How many connections of this database wait for a lock. */
export async function waitingCount(other: pg.Client): Promise<number> {
  // Within a transaction the view shows the same each time, unless its snapshot is cleared.
  await other.query('select pg_stat_clear_snapshot()');
  const { rows } = await other.query(`select count(*)::integer as waiting from pg_stat_activity
    where datname = current_database() and wait_event_type = 'Lock'`);
  return rows[0].waiting;
}

/** Runs our work while a transaction of the other connection is open. That transaction then commits. */
export async function whileOther<T>(
  { other }: TwoConnections,
  statements: readonly string[],
  ours: () => Promise<T>,
): Promise<T> {
  await other.query('begin');
  for (const statement of statements) await other.query(statement);
  const done = ours();
  done.catch(() => {});
  await untilWaiting(other);
  await other.query('commit');
  return done;
}

/** Does one write of a provider. @returns whether it was written */
export const isWritten = async (database: Database, write: ProviderWrite): Promise<boolean> =>
  (await writeProviders(database, [write])).has(write);
