/** Who sends a request, as the authentication found out. */
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
  /** Whether the project is the one that Keystone calls the admin project; true where it calls none so. */
  readonly isAdminProject: boolean;
  /** The service that sends the request on behalf of the user, by a token of its own. */
  readonly service: ServiceIdentity | undefined;
};

/** Who a service is that sends a request for somebody else. */
export type ServiceIdentity = Pick<Identity, 'userId' | 'userDomainId' | 'projectId' | 'projectDomainId' | 'roles'>;

/** Before the authentication, and where none is needed. */
export const nobody: Identity = {
  userId: '',
  userDomainId: undefined,
  projectId: undefined,
  projectDomainId: undefined,
  roles: [],
  domainId: undefined,
  systemScope: undefined,
  isAdminProject: true,
  service: undefined,
};
