import type { ClaimedTerm } from '../../db/statements/claims/claim_write.ts';
import type { Config } from '../config/config.ts';
import { badRequest } from '../rest/errors.ts';
import type { ConsumerBody } from './allocation_bodies.ts';

/** The end of a term as answers show it; null for a lasting consumer. */
export const endText = (end: Date | null): string | null => end?.toISOString() ?? null;

/** Checks how long a term of a consumer may last. @throws ApiError 400 */
export function checkTerm(uuid: string, seconds: number, { placement: { maxTerm } }: Config): void {
  if (seconds <= maxTerm) return;
  throw badRequest(
    `Consumer ${uuid}: 'expires_in' may be up to ${maxTerm} seconds here ([placement] max_term). Got: ${seconds}`,
  );
}

/** The term that a claim gives to a consumer, if the claim names one. @throws ApiError 400 */
export function termOf(uuid: string, body: ConsumerBody, config: Config): { readonly term?: ClaimedTerm } {
  const { expires_in: seconds, allocations } = body;
  if (seconds === undefined) return {};
  if (allocations !== undefined && Object.keys(allocations).length === 0) {
    throw badRequest(
      `Consumer ${uuid}: 'expires_in' cannot stand together with empty 'allocations', which remove the consumer. ` +
        `Got: ${seconds}`,
    );
  }
  checkTerm(uuid, seconds, config);
  return { term: { seconds } };
}
