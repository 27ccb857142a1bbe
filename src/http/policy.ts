import type { PolicyTarget } from '../api/endpoint.ts';
import type { Identity } from '../api/identity.ts';
import { ApiError } from '../errors.ts';

const hasRole = (identity: Identity, role: string): boolean =>
  identity.roles.some((held) => held.toLowerCase() === role);

const adminOrService = (identity: Identity): boolean => hasRole(identity, 'admin') || hasRole(identity, 'service');

/**
 * Whether the rule lets this identity through, by upstream's defaults: admin or service for everything, and readers for the
 * usages of their own project.
 */
export function isAllowed(rule: string, identity: Identity, target: PolicyTarget): boolean {
  if (adminOrService(identity)) return true;
  if (rule !== 'placement:usages') return false;
  return hasRole(identity, 'reader') && identity.projectId !== undefined && identity.projectId === target.projectId;
}

/** @throws ApiError 403 where the rule does not let this identity through. */
export function enforce(rule: string, identity: Identity, target: PolicyTarget): void {
  if (isAllowed(rule, identity, target)) return;
  throw new ApiError(403, `Policy does not allow ${rule} to be performed.`, { vary: false });
}
