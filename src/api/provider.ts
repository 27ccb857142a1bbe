import type { Fleet } from '../fleet/fleet.ts';
import type { Provider } from '../fleet/provider.ts';
import { notFoundWithoutVary } from '../rest/errors.ts';

/** The error text for an unknown provider, in upstream's words. */
export const noSuchProvider = (uuid: string): string => `No resource provider with uuid ${uuid} found`;

/** @throws ApiError 404 where there is no provider of this UUID, which must be spelt as it is stored. */
export function findProvider(fleet: Fleet, uuid: string): Provider {
  const provider = fleet.byUuid.get(uuid);
  if (provider === undefined) throw notFoundWithoutVary(noSuchProvider(uuid));
  return provider;
}
