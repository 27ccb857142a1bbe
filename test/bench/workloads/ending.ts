import { execute } from '../../support/postgresql.ts';
import { claimedResources, flatHost, project, user } from '../data_set.ts';
import { measure } from '../measure.ts';
import { claimAnywhere, release } from './claims.ts';
import type { Workload } from './workload.ts';

/** The number of terms that end in each second of the measurement: 100,000 in a minute. */
const endsPerSecond = 1_667;

/**
 * W10: claims of new consumers, as in W4, while the terms of other consumers end. Beside 100,000 more consumers claims take
 * longer in any case, so the comparison has as many consumers whose terms end later.
 */
export const ending: readonly Workload[] = [
  claiming('W10 claims beside terms that do not end, c32', '1 d'),
  claiming('W10 claims while terms end, c32', '0 s'),
];

/** @param begin the time from the beginning of the warm-up to the first end */
function claiming(name: string, begin: string): Workload {
  return {
    name,
    dataSet: 'flat',
    run: async (server, { durationMs, providers }) => {
      const url = server.databaseUrl();
      if (url === undefined || !(await knowsTerms(url))) return undefined;
      const consumers: string[] = [];
      // The warm-up takes a quarter of the time of the measurement.
      await giveTerms(url, { seconds: (durationMs * 5) / 4000, begin, providers });
      const measured = await measure(server, 32, { durationMs }, async (connection) => {
        const consumer = await claimAnywhere(connection, providers);
        if (consumer !== undefined) consumers.push(consumer);
      });
      const left = await leftOver(url);
      await removeConsumersWithTerms(url);
      await release(server, consumers);
      return { ...measured, note: `${left} not removed 2 s after their ends` };
    },
  };
}

export async function knowsTerms(url: string): Promise<boolean> {
  return (await execute(url, `select where to_regclass('consumer_terms') is not null`)).rowCount === 1;
}

/**
 * Makes consumers on one host each, by SQL. Their terms end evenly within this number of seconds. The tables are vacuumed,
 * as they would be if the consumers had come one by one; otherwise autovacuum would do so during the measurement.
 */
export async function giveTerms(
  url: string,
  { seconds, begin, providers }: { readonly seconds: number; readonly begin: string; readonly providers: number },
): Promise<void> {
  const count = Math.ceil(seconds * endsPerSecond);
  const values = Object.entries(claimedResources).map(([name, used]) => `('${name}', ${used})`);
  await execute(
    url,
    `begin;
    select set_config('placement.etags', 'written', true);
    insert into projects (external_id) values ('${project}') on conflict do nothing;
    insert into users (external_id) values ('${user}') on conflict do nothing;
    create temporary table ending on commit drop as
      select n, gen_random_uuid()::text as uuid, 1 + floor(random() * ${providers})::integer as host from generate_series(1, ${count}) as n;
    insert into consumers (created_at, uuid, project_id, user_id, generation, etag)
      select now(), uuid, p.id, u.id, 1, 'ending' from ending, projects p, users u
      where p.external_id = '${project}' and u.external_id = '${user}';
    insert into allocations (created_at, resource_provider_id, resource_class_id, consumer_id, used)
      select now(), p.id, c.id, e.uuid, v.used from ending e join resource_providers p on p.name = '${flatHost.kind}-' || e.host
      cross join (values ${values.join(', ')}) as v (name, used) join resource_classes c on c.name = v.name;
    insert into consumer_terms
      select c.id, 1, 'infinity' from ending e join consumers c on c.uuid = e.uuid;
    commit`,
  );
  await execute(url, 'vacuum analyze');
  await execute(
    url,
    `update consumer_terms set expires_at = clock_timestamp() + interval '${begin}' + n * interval '1 s' / ${endsPerSecond}
    from (select consumer_id as id, row_number() over (order by consumer_id) as n from consumer_terms) as numbered where id = consumer_id`,
  );
}

/** Deletes all consumers that have terms, by SQL. */
export async function removeConsumersWithTerms(url: string): Promise<void> {
  await execute(
    url,
    `begin;
    select set_config('placement.etags', 'written', true);
    delete from allocations where consumer_id in (select uuid from consumers join consumer_terms on consumer_id = id);
    delete from consumers where id in (select consumer_id from consumer_terms);
    commit`,
  );
}

/** The number of consumers whose terms ended two seconds ago or earlier. */
async function leftOver(url: string): Promise<number> {
  const { rowCount } = await execute(
    url,
    `select from consumer_terms where expires_at < clock_timestamp() - interval '2 s'`,
  );
  return rowCount ?? 0;
}
