import { checkHeaderValue } from './send.ts';

/** Authenticates requests. */
export type Auth = {
  /** Returns the headers for a request. This may get a token first. @throws AuthError */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /**
   * Called when the server has refused a token.
   *
   * @param headers of the refused request
   * @returns whether the request can be retried with a new token
   */
  refused(headers: Readonly<Record<string, string>>): boolean;
  /** Finds the URL of the service in the catalog. @throws AuthError */
  endpoint?(signal: AbortSignal): Promise<string>;
};

/**
 * Uses an existing token. For a service without Keystone the token is the user, such as `admin`.
 *
 * @throws TypeError for a token that is empty, or that cannot be sent
 */
export function token(value: string): Auth {
  if (value === '') {
    throw new TypeError(
      'The token is empty. Give the user for a service without Keystone, such as admin, or use keystone().',
    );
  }
  checkHeaderValue('The token', value);
  return { headers: async () => ({ 'X-Auth-Token': value }), refused: () => false };
}
