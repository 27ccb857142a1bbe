import { type RawBuilder, sql } from 'kysely';
import { failureKind } from '../../engine/failures.ts';
import { isOnRun } from '../../engine/server_state.ts';
import { utcNow } from '../../engine/time.ts';
import { type FleetSnapshot, inventoryChangesSince } from '../../fleet/change_log.ts';
import type { PartTags } from '../entity_tags.ts';
import { raised } from '../generations.ts';

/** What a provider was judged by. */
export type JudgedProvider = {
  readonly providerId: number;
  /** The UUID that the request names: other programs may give the provider another one. */
  readonly uuid: string;
  readonly generation: number;
  /**
   * The snapshot of the fleet that the write was judged by. Nothing is written on another run of the server, nor where the inventories,
   * traits or aggregates of the provider have changed since at the same generation. Without it, neither is checked.
   */
  readonly judgedOn?: FleetSnapshot | undefined;
};

/**
 * Table `requested`: writes of the same part of different providers. `index` is the index of each among them.
 */
export const requestedWrites = (
  writes: readonly (Omit<JudgedProvider, 'generation'> & Partial<JudgedProvider> & PartTags)[],
): RawBuilder<unknown> => sql`
    requested as materialized (
      select * from unnest(${writes.map((_, index) => index)}::integer[], ${writes.map(({ providerId }) => providerId)}::integer[],
        ${writes.map(({ uuid }) => uuid)}::text[], ${writes.map(({ generation }) => generation ?? null)}::integer[],
        ${writes.map(({ judgedOn }) => judgedOn?.serverRun ?? null)}::text[],
        ${writes.map(({ tag }) => tag)}::text[], ${writes.map(({ tagBefore }) => tagBefore)}::text[]
      ) as a (index, provider_id, uuid, generation, run, tag, tag_before)
    )`;

/**
 * Which rows of `requested` and `resource_providers p` belong together and may be written: the server is still on the run that the
 * write was judged on, and the write is not in table `missing`.
 */
export const isWritable = sql`p.id = requested.provider_id and p.uuid = requested.uuid and ${isOnRun(sql`requested.run`)}
        and requested.index not in (select index from missing)`;

/**
 * Table `guard`: raises the generation of each provider that is still as it was judged. Some programs change inventories, traits and
 * aggregates without raising the generation, as our own service does with aggregates below microversion 1.19: so the short log is
 * read as well.
 */
export const raisedGenerations = (writes: readonly JudgedProvider[]): RawBuilder<unknown> => sql`
    changed as materialized (${changedMeanwhile(writes)}), guard as (
      update resource_providers p set generation = ${raised(sql`p.generation`)}, updated_at = ${utcNow} from requested
      where ${isWritable} and coalesce(p.generation, 0) = requested.generation and requested.index not in (select index from changed)
      returning requested.index, p.id, p.generation
    )`;

/** Columns of a result: the transaction, and its time in whole seconds since 1970. */
export const writtenBy = sql`pg_current_xact_id()::text as xid, floor(date_part('epoch', ${utcNow})) as seconds`;

/** The writes of table `guard` that were done. @param settings a row that is joined */
export const writtenGuards = (settings: RawBuilder<unknown>): RawBuilder<unknown> => sql`
    select index, id, generation, null::integer as "parentId", null::integer as "rootId", ${writtenBy} from guard, ${settings}`;

/** The writes of a batch were judged by different snapshots of the fleet, mostly few. */
function changedMeanwhile(writes: readonly JudgedProvider[]): RawBuilder<unknown> {
  const indexes = Map.groupBy(writes.keys(), (index) => writes[index]?.judgedOn);
  const changed = Array.from(indexes, ([snapshot, ofSnapshot]) =>
    snapshot === undefined
      ? []
      : [
          sql`select index from requested where index = any(${ofSnapshot}::integer[])
        and (provider_id = any(array(${inventoryChangesSince(snapshot)}))) is not false`,
        ],
  ).flat();
  return changed.length === 0 ? sql`select index from requested where false` : sql.join(changed, sql` union all `);
}

/** What writes that replace the members of a part do. */
export type MemberChanges = {
  /** Whether one of them removes members. A deletion without rows would still run its trigger, so it is left out. */
  readonly removes: boolean;
  /** Whether each of them leaves a row of the part in the change log. */
  readonly areLogged: boolean;
};

/** @param parts the members before each write, and after it */
export function memberChanges<Member>(
  parts: readonly { readonly present: readonly Member[]; readonly wanted: readonly Member[] }[],
): MemberChanges {
  const differences = parts.map(({ present, wanted }) => {
    const [before, after] = [new Set(present), new Set(wanted)];
    return { removes: !before.isSubsetOf(after), adds: !after.isSubsetOf(before) };
  });
  return {
    removes: differences.some(({ removes }) => removes),
    areLogged: differences.every(({ removes, adds }) => removes || adds),
  };
}

/** A provider of a tree by which a request was judged. */
export type JudgedNode = { readonly id: number; readonly uuid: string; readonly parentId: number | null };

/**
 * Tables of a WITH clause. The last table, `changed`, has a row for each provider of some whole trees that is gone, is new in the trees,
 * or has another parent than when the request was judged.
 *
 * @param nodes all providers of the trees
 */
export function changedNodes(nodes: readonly JudgedNode[]): RawBuilder<unknown> {
  const ids = nodes.map((node) => node.id);
  return sql`judged as (
      select * from unnest(${ids}::integer[], ${nodes.map((node) => node.uuid)}::text[],
        ${nodes.map((node) => node.parentId)}::integer[]) as node (id, uuid, parent_id)
    ), present as (
      select id, uuid::text, parent_provider_id as parent_id from resource_providers
      where id = any(${ids}::integer[]) or parent_provider_id = any(${ids}::integer[])
    ), changed as (
      select from judged full join present using (id, uuid)
      where present.id is null or judged.id is null or judged.parent_id is distinct from present.parent_id
    )`;
}

/** What the row of a provider must still contain besides its UUID. A field that is absent is not compared. */
type SeenProvider = { readonly name?: string; readonly parentUuid: string | null };

/** The row of a provider that a change was judged by. */
export type JudgedRow = {
  readonly id: number;
  /** The UUID that the request names: other programs may give the provider another one. */
  readonly uuid: string;
  /** The run of the server that the id was read from (db/engine/server_state.ts). Without it, it is not checked. */
  readonly serverRun?: string | undefined;
  /** What the row must still contain; without it, its content is not checked. */
  readonly seen?: SeenProvider | undefined;
};

/** Whether `resource_providers p`, found by the id, is the row that was judged, with the content that was seen. */
export const isAsJudged = ({ uuid, serverRun, seen }: Omit<JudgedRow, 'id'>): RawBuilder<boolean> =>
  sql`(p.uuid = ${uuid}::text and ${isOnRun(serverRun)} ${seen === undefined ? sql`` : sql`and ${isAsSeen(seen)}`})`;

const isAsSeen = ({ name, parentUuid }: SeenProvider): RawBuilder<boolean> => sql`
        (select parent.uuid from resource_providers parent where parent.id = p.parent_provider_id) is not distinct from ${parentUuid}::text
        ${name === undefined ? sql`` : sql`and coalesce(p.name, '') = ${name}::text`}`;

/**
 * The outcome of a change of a provider. `changed`: nothing was done, since the provider is no longer as it was judged.
 */
export type ChangeOutcome = 'done' | 'changed' | 'name taken';

/**
 * The outcome of a change that may set the name of a provider.
 *
 * @param change resolves to whether it was done. A deadlock or a serialization failure counts as `changed`: nothing was
 *   done, and another transaction has changed the rows that it was judged by.
 */
export async function changeOutcome(change: Promise<boolean>): Promise<ChangeOutcome> {
  try {
    return (await change) ? 'done' : 'changed';
  } catch (error) {
    const kind = failureKind(error);
    if (kind === 'taken') return 'name taken';
    if (kind === 'lost race') return 'changed';
    throw error;
  }
}
