import { type RawBuilder, sql } from 'kysely';
import { isOnRun } from '../../engine/server_run.ts';

/** What the row of a provider must still contain: those fields of its entity tag that can change. */
export type SeenProvider = { readonly name: string; readonly parentId: number | null };

/** The row of a provider that a change was judged by. */
export type JudgedRow = {
  readonly id: number;
  /** The run of the server that the id was read from (db/engine/server_run.ts). Without it, it is not checked. */
  readonly serverRun?: string | undefined;
  /** What the row must still contain; without it, its content is not checked. */
  readonly seen?: SeenProvider | undefined;
};

/** Whether `resource_providers p`, found by the id, is the row that was judged, with the content that was seen. */
export const isAsJudged = ({ serverRun, seen }: Omit<JudgedRow, 'id'>): RawBuilder<boolean> =>
  seen === undefined
    ? isOnRun(serverRun)
    : sql`(${isOnRun(serverRun)} and coalesce(p.name, '') = ${seen.name}::text
        and p.parent_provider_id is not distinct from ${seen.parentId}::integer)`;
