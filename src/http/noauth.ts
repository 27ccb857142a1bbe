import type { Identity } from '../api/identity.ts';

/**
 * The identity by `auth_strategy = noauth2`, for tests and trusted networks: the token is `user` or `user:project`, whose
 * project defaults to the user. The user `admin` has the role admin; an X-Roles header says otherwise.
 *
 * @returns undefined where there is no token.
 */
export function noauthIdentity(headers: Headers): Identity | undefined {
  const token = headers.get('x-auth-token');
  if (token === null) return undefined;
  const colon = token.indexOf(':');
  const userId = colon === -1 ? token : token.slice(0, colon);
  const roles = headers.get('x-roles');
  const systemScope = headers.get('openstack-system-scope') || undefined;
  return {
    userId,
    projectId: systemScope === undefined ? token.slice(userId.length + 1) || userId : undefined,
    roles: roles === null ? (userId === 'admin' ? ['admin'] : []) : roles.split(','),
    systemScope,
  };
}
