import type { Query } from '../races/server_process.ts';
import type { Arena } from './arena.ts';
import type { Finding } from './check.ts';

/**
 * Compares the root that is stored of each provider of an arena with the one that its parents lead to. The service follows the parents,
 * so only other programs of the database (upstream) see a root that is wrong.
 */
export async function findWrongRoot(query: Query, { providers }: Arena): Promise<Finding | undefined> {
  const wrong = await query(`
    with recursive above as (
      select id, uuid, root_provider_id, id as top, parent_provider_id from resource_providers
      where uuid in (${providers.map((uuid) => `'${uuid}'`).join(', ')})
      union all
      select below.id, below.uuid, below.root_provider_id, p.id, p.parent_provider_id
      from above below join resource_providers p on p.id = below.parent_provider_id
    )
    select uuid, root_provider_id as stored, top as expected from above
    where parent_provider_id is null and root_provider_id is distinct from top`);
  if (wrong.length === 0) return undefined;
  return { kind: 'wrong root', text: JSON.stringify(wrong) };
}
