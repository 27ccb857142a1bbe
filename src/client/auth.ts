/** How requests say who sends them. */
export type Auth = {
  /** Headers for a request; it may take a token first. @throws AuthError */
  headers(signal: AbortSignal): Promise<Readonly<Record<string, string>>>;
  /** Told that the server did not take the token. @returns whether a new one is worth a try */
  refused(): boolean;
  /** Where the service is, by the catalog. @throws AuthError */
  endpoint?(signal: AbortSignal): Promise<string>;
};

/** A token that is there already; of a service without Keystone the user, such as `admin`. */
export const token = (value: string): Auth => ({
  headers: async () => ({ 'X-Auth-Token': value }),
  refused: () => false,
});
