import { type RawBuilder, sql } from 'kysely';
import { isOnRun } from '../../engine/server_run.ts';

/** What the row of a provider must still contain besides its UUID. A field that is absent is not compared. */
export type SeenProvider = { readonly name?: string; readonly parentUuid: string | null };

/** The row of a provider that a change was judged by. */
export type JudgedRow = {
  readonly id: number;
  /** The UUID that the request names: other programs may give the provider another one. */
  readonly uuid: string;
  /** The run of the server that the id was read from (db/engine/server_run.ts). Without it, it is not checked. */
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
