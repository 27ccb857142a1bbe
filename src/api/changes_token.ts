import { tokenOf } from '../fleet/changes/token.ts';
import type { FleetKeeper } from '../fleet/keeper.ts';
import type { Answer, ApiRequest } from '../rest/endpoint.ts';
import { since } from '../rest/microversions.ts';

/**
 * The header with the token of what the fleet shows now, from 1.44 on: a client that has read the answer follows the changes from
 * there. It must be called after the refresh, before the handler waits for anything else.
 */
export const changesToken = (
  { version }: Pick<ApiRequest, 'version'>,
  { recent }: Pick<FleetKeeper, 'recent'>,
): Pick<Answer, 'headers'> =>
  version >= since.following ? { headers: { 'placement-changes-token': tokenOf(recent.position) } } : {};
