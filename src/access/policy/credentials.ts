import type { Identity } from '../../rest/identity.ts';
import type { Values } from './template.ts';

/** The kinds of tokens that rules may be for. */
export type Scope = 'project' | 'domain' | 'system';

/**
 * The values of an identity that rules may use: oslo.context's policy values. Each name is always there: a check that
 * asks for another one cannot be evaluated.
 */
export function credentialsOf(identity: Identity): Values {
  const { service } = identity;
  return {
    user_id: identity.userId,
    user_domain_id: identity.userDomainId ?? null,
    system_scope: identity.systemScope ?? null,
    // Without a scope for the system it equals nothing, not even None.
    system: identity.systemScope ? identity.systemScope : [],
    domain_id: identity.domainId ?? null,
    project_id: identity.projectId ?? null,
    project_domain_id: identity.projectDomainId ?? null,
    roles: identity.roles,
    is_admin_project: identity.isAdminProject,
    service_user_id: service?.userId ?? null,
    service_user_domain_id: service?.userDomainId ?? null,
    service_project_id: service?.projectId ?? null,
    service_project_domain_id: service?.projectDomainId ?? null,
    service_roles: service?.roles ?? [],
  };
}

/** A token without any scope counts as one for a project, as in oslo.policy. */
export function scopeOf({ systemScope, domainId }: Identity): Scope {
  if (systemScope) return 'system';
  return domainId ? 'domain' : 'project';
}
