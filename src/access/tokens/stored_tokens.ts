import { randomUUID } from 'node:crypto';
import type { Database } from '../../../db/engine/connect.ts';
import { createToken, type NewToken, type TokenRow } from '../../../db/statements/tokens.ts';
import { timeText } from '../../text/strings.ts';
import { makeToken } from './token_text.ts';

/** A token as answers of the API and the command show it: without the token itself. */
export type ShownToken = Readonly<ReturnType<typeof showToken>>;

/** The user, the project and the roles of a token, and how long it is valid. */
export type WantedToken = Pick<NewToken, 'userId' | 'projectId' | 'roles' | 'seconds'>;

/** A new token, which is shown this once. */
export type IssuedToken = { readonly text: string; readonly shown: ShownToken };

/** Makes a token, and stores its hash, prefix and owner. */
export async function issueToken(database: Pick<Database, 'write'>, wanted: WantedToken): Promise<IssuedToken> {
  const { text, hash, prefix } = makeToken();
  return { text, shown: showToken(await createToken(database, { ...wanted, uuid: randomUUID(), hash, prefix })) };
}

/** A stored token as it is shown. */
export const showToken = ({ uuid, prefix, userId, projectId, roles, created, expires, used }: TokenRow) => ({
  id: uuid,
  prefix,
  user_id: userId,
  project_id: projectId,
  roles,
  created_at: created.toISOString(),
  expires_at: timeText(expires),
  used_at: timeText(used),
});
