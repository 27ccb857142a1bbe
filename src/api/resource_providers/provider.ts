import type { JudgedNode } from '../../../db/statements/providers/judged_provider.ts';
import type { Fleet } from '../../fleet/model/fleet.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import { firstStored } from '../../placement/spellings.ts';
import { isUuidLike, spellingsOf } from '../../placement/uuid.ts';
import { ApiError, noSuchProvider } from '../../request/errors.ts';

/** @throws ApiError 404 where there is no provider of this UUID, which must be spelt as it is stored. */
export function findProvider(fleet: Fleet, uuid: string): Provider {
  const provider = fleet.byUuid.get(uuid);
  if (provider === undefined) throw new ApiError(404, noSuchProvider(uuid), { vary: false, sentence: absent(uuid) });
  return provider;
}

/**
 * The provider that a GET shows a part of. Upstream's handlers catch the error and repeat it, so its text comes twice.
 *
 * @param separator what is between the two texts
 * @throws ApiError 404
 */
export function findShownProvider(fleet: Fleet, uuid: string, separator = ': '): Provider {
  const provider = fleet.byUuid.get(uuid);
  if (provider === undefined) {
    const detail = `${noSuchProvider(uuid)}${separator}${noSuchProvider(uuid)}`;
    throw new ApiError(404, detail, { sentence: absent(uuid) });
  }
  return provider;
}

/** The error from 2.2 on for a provider that does not exist. If the request has a name instead of a UUID, it says how to find the UUID. */
export const absent = (uuid: string): string =>
  isUuidLike(uuid)
    ? noSuchProvider(uuid)
    : `${noSuchProvider(uuid)}: that is no UUID. GET /resource_providers?name=NAME finds it by its name.`;

/**
 * The provider with a UUID in any spelling; undefined if there is none. Programs other than the API may have stored a UUID
 * in another spelling than the usual one, or a text that is no UUID.
 */
export const findInAnySpelling = (fleet: Fleet, uuid: string): Provider | undefined =>
  firstStored(fleet.byUuid, spellingsOf(uuid));

/** The providers of whole trees by whose shape a request is judged. */
export const judgedNodes = (trees: Iterable<Provider>): readonly JudgedNode[] =>
  Array.from(trees, ({ id, uuid, parent }) => ({ id, uuid, parentId: parent?.id ?? null }));
