import { type RawBuilder, sql } from 'kysely';
import { isOnRun } from '../../engine/server_run.ts';
import { utcNow } from '../../engine/utc_now.ts';
import { raised } from '../generation.ts';
import type { PartTags } from '../written_tags.ts';

/** What a provider was judged by. */
export type JudgedProvider = {
  readonly providerId: number;
  readonly generation: number;
  /**
   * The run of the server that the generation was read from (db/engine/server_run.ts). Without it, it is not checked.
   */
  readonly serverRun?: string | undefined;
};

/**
 * Table `asked`: writes of the same part of different providers. `place` is the index of each among them.
 */
export const askedWrites = (
  writes: readonly (Omit<JudgedProvider, 'generation'> & Partial<JudgedProvider> & PartTags)[],
): RawBuilder<unknown> => sql`
    asked as materialized (
      select * from unnest(${writes.map((_, place) => place)}::integer[], ${writes.map(({ providerId }) => providerId)}::integer[],
        ${writes.map(({ generation }) => generation ?? null)}::integer[], ${writes.map(({ serverRun }) => serverRun ?? null)}::text[],
        ${writes.map(({ tag }) => tag)}::text[], ${writes.map(({ tagBefore }) => tagBefore)}::text[]
      ) as a (place, provider_id, generation, run, tag, tag_before)
    )`;

/**
 * Which rows of `asked` and `resource_providers p` belong together and may be written: the server is still on the run that the
 * write was judged on, and the write is not one of those in table `missing`.
 */
export const isAsked = sql`p.id = asked.provider_id and ${isOnRun(sql`asked.run`)}
        and asked.place not in (select place from missing)`;

/**
 * Table `guard`: raises the generation of each provider that still has the one that it was judged by.
 *
 * @param condition what the writes must fulfil besides
 */
export const raisedGenerations = (condition: RawBuilder<unknown> = sql`true`): RawBuilder<unknown> => sql`
    guard as (
      update resource_providers p set generation = ${raised(sql`p.generation`)}, updated_at = ${utcNow} from asked
      where ${isAsked} and coalesce(p.generation, 0) = asked.generation and ${condition}
      returning asked.place, p.id
    )`;
