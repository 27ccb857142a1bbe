import type { Policy } from '../access/policy/policy.ts';
import type { PolicyTarget } from '../rest/endpoint.ts';
import { ApiError } from '../rest/errors.ts';
import type { Identity } from '../rest/identity.ts';
import type { Dialect } from './dialect.ts';

/**
 * Refuses a request that a rule of the policy does not allow.
 *
 * @param target what the rule compares with the identity; by default its own project and user
 * @throws ApiError 403
 */
export function authorize(
  policy: Policy,
  rule: string,
  identity: Identity,
  { forbidden }: Pick<Dialect, 'forbidden'>,
  target: PolicyTarget = { project_id: identity.projectId ?? null, user_id: identity.userId },
): void {
  if (policy.allows(rule, identity, target)) return;
  throw new ApiError(403, forbidden(rule), { vary: false });
}
