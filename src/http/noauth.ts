import { type Identity, noIdentity, type ServiceIdentity } from '../rest/identity.ts';

/**
 * The identity by `auth_strategy = noauth2`, for tests and trusted networks: the token is `user` or `user:project`,
 * whose project defaults to the user, and the headers that Keystone's middleware would set are believed. Without an
 * X-Roles header the user `admin` may do everything: it has the roles admin and service.
 *
 * @returns undefined where there is no token.
 */
export function noauthIdentity(headers: Headers): Identity | undefined {
  const token = headers.get('x-auth-token');
  if (token === null) return undefined;
  const header = (name: string): string | undefined => headers.get(name) ?? undefined;
  const colon = token.indexOf(':');
  const userId = colon === -1 ? token : token.slice(0, colon);
  const roles = header('x-roles');
  const systemScope = header('openstack-system-scope') || undefined;
  const ownProject = systemScope === undefined ? token.slice(userId.length + 1) || userId : header('x-tenant-id');
  return {
    ...noIdentity,
    userId,
    userDomainId: header('x-user-domain-id'),
    projectId: header('x-project-id') ?? ownProject,
    projectDomainId: header('x-project-domain-id'),
    roles: roles === undefined ? (userId === 'admin' ? ['admin', 'service'] : []) : list(roles),
    domainId: header('x-domain-id') || undefined,
    systemScope,
    isAdminProject: (header('x-is-admin-project') ?? 'true').toLowerCase() === 'true',
    service: serviceOf(header),
  };
}

function serviceOf(header: (name: string) => string | undefined): ServiceIdentity | undefined {
  const userId = header('x-service-user-id');
  const roles = header('x-service-roles');
  if (userId === undefined && roles === undefined) return undefined;
  return {
    userId: userId ?? '',
    userDomainId: header('x-service-user-domain-id'),
    projectId: header('x-service-project-id'),
    projectDomainId: header('x-service-project-domain-id'),
    roles: list(roles ?? ''),
  };
}

const list = (text: string): readonly string[] => (text === '' ? [] : text.split(',').map((item) => item.trim()));
