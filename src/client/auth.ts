/** Authenticates requests. */
export type Auth = {
  /** Returns the headers for a request. This may get a token first. @throws AuthError */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Called when the server has refused the token. @returns whether the request can be tried with a new token */
  refused(): boolean;
  /** Finds the URL of the service in the catalog. @throws AuthError */
  endpoint?(signal: AbortSignal): Promise<string>;
};

/** Uses an existing token. For a service without Keystone the token is the user, such as `admin`. */
export const token = (value: string): Auth => ({
  headers: async () => ({ 'X-Auth-Token': value }),
  refused: () => false,
});
