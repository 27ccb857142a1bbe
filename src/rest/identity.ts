/** The user, project and roles of a request, as the authentication found them. */
export type Identity = {
  readonly userId: string;
  readonly userDomainId: string | undefined;
  readonly projectId: string | undefined;
  readonly projectDomainId: string | undefined;
  readonly roles: readonly string[];
  /** Set for tokens that are scoped to a domain rather than a project. */
  readonly domainId: string | undefined;
  /** Set for tokens that are scoped to the whole system. */
  readonly systemScope: string | undefined;
  /** Whether the project is Keystone's admin project; true where Keystone has none. */
  readonly isAdminProject: boolean;
  /** When the token expires, in milliseconds since 1970; undefined if it never expires. */
  readonly expiresAtMs: number | undefined;
  /** The service that sends the request on behalf of the user, with a second token. */
  readonly service: ServiceIdentity | undefined;
};

/** The identity of a service that sends a request on behalf of a user. */
export type ServiceIdentity = Pick<Identity, 'userId' | 'userDomainId' | 'projectId' | 'projectDomainId' | 'roles'>;

/** The identity of a request before the authentication, and of one that needs none. */
export const noIdentity: Identity = {
  userId: '',
  userDomainId: undefined,
  projectId: undefined,
  projectDomainId: undefined,
  roles: [],
  domainId: undefined,
  systemScope: undefined,
  isAdminProject: true,
  expiresAtMs: undefined,
  service: undefined,
};
