/** Who sends a request, as the authentication found out. */
export type Identity = {
  readonly userId: string;
  readonly projectId: string | undefined;
  readonly roles: readonly string[];
  /** Set for tokens that are scoped to the whole system. */
  readonly systemScope: string | undefined;
};
