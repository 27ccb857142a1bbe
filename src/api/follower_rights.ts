import type { ApiRequest } from '../rest/endpoint.ts';

/** How often it is checked whether a client may still follow, in milliseconds. */
export const beatMs = 15_000;

/**
 * Checks whether the client of a request may still follow changes: whether its token is still valid, and the policy still allows it. A check
 * that Keystone has not answered is waited for.
 *
 * @param onRefused called with the ApiError 401 or 403 once it may not
 * @returns the check, to be called at each beat
 */
export function followerRights({ requireStill }: ApiRequest, onRefused: (error: unknown) => void): () => void {
  let isChecking = false;
  return () => {
    if (isChecking) return;
    isChecking = true;
    requireStill('placement:changes:list')
      .catch(onRefused)
      .finally(() => {
        isChecking = false;
      });
  };
}

/** For how many milliseconds a token is valid at most, if Keystone cannot be asked. */
export const msLeft = ({
  identity: { expiresAtMs = Number.POSITIVE_INFINITY },
}: Pick<ApiRequest, 'identity'>): number => Math.max(0, expiresAtMs - Date.now());
