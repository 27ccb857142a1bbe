import { type RawBuilder, sql } from 'kysely';
import { isOnRun } from '../../engine/server_run.ts';
import { utcNow } from '../../engine/utc_now.ts';
import { inventoryChangesSince, type Moment } from '../../fleet/change_log.ts';
import { raised } from '../generation.ts';
import type { PartTags } from '../written_tags.ts';

/** What a provider was judged by. */
export type JudgedProvider = {
  readonly providerId: number;
  /** The UUID that the request names: other programs may give the provider another one. */
  readonly uuid: string;
  readonly generation: number;
  /**
   * The moment of the fleet that the write was judged by. Nothing is written on another run of the server, nor where the inventories,
   * traits or aggregates of the provider have changed since at the same generation. Without it, neither is checked.
   */
  readonly judgedOn?: Moment | undefined;
};

/**
 * Table `asked`: writes of the same part of different providers. `place` is the index of each among them.
 */
export const askedWrites = (
  writes: readonly (Omit<JudgedProvider, 'generation'> & Partial<JudgedProvider> & PartTags)[],
): RawBuilder<unknown> => sql`
    asked as materialized (
      select * from unnest(${writes.map((_, place) => place)}::integer[], ${writes.map(({ providerId }) => providerId)}::integer[],
        ${writes.map(({ uuid }) => uuid)}::text[], ${writes.map(({ generation }) => generation ?? null)}::integer[],
        ${writes.map(({ judgedOn }) => judgedOn?.serverRun ?? null)}::text[],
        ${writes.map(({ tag }) => tag)}::text[], ${writes.map(({ tagBefore }) => tagBefore)}::text[]
      ) as a (place, provider_id, uuid, generation, run, tag, tag_before)
    )`;

/**
 * Which rows of `asked` and `resource_providers p` belong together and may be written: the server is still on the run that the
 * write was judged on, and the write is not one of those in table `missing`.
 */
export const isAsked = sql`p.id = asked.provider_id and p.uuid = asked.uuid and ${isOnRun(sql`asked.run`)}
        and asked.place not in (select place from missing)`;

/**
 * Table `guard`: raises the generation of each provider that is still as it was judged. Some programs change inventories, traits and
 * aggregates without raising the generation, as our own service does with aggregates below microversion 1.19: so the short log is
 * read as well.
 */
export const raisedGenerations = (writes: readonly JudgedProvider[]): RawBuilder<unknown> => sql`
    changed as materialized (${changedMeanwhile(writes)}), guard as (
      update resource_providers p set generation = ${raised(sql`p.generation`)}, updated_at = ${utcNow} from asked
      where ${isAsked} and coalesce(p.generation, 0) = asked.generation and asked.place not in (select place from changed)
      returning asked.place, p.id
    )`;

/** The writes of a batch were judged at different moments, mostly one or two. */
function changedMeanwhile(writes: readonly JudgedProvider[]): RawBuilder<unknown> {
  const places = Map.groupBy(writes.keys(), (place) => writes[place]?.judgedOn);
  const changed = Array.from(places, ([moment, ofMoment]) =>
    moment === undefined
      ? []
      : [
          sql`select place from asked where place = any(${ofMoment}::integer[])
        and (provider_id = any(array(${inventoryChangesSince(moment)}))) is not false`,
        ],
  ).flat();
  return changed.length === 0 ? sql`select place from asked where false` : sql.join(changed, sql` union all `);
}
