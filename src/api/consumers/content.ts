import type { ClaimedTerm } from '../../../db/statements/claims/claim_write.ts';
import type { ConsumerAllocationRow } from '../../../db/statements/claims/read_allocations.ts';
import type { Config } from '../../config/config.ts';
import { type ConsumerGenerations, shownGeneration } from '../../placement/consumer_generation.ts';
import { amountsByProvider, type ConsumerContent } from '../../placement/entity_tag.ts';
import { badRequest } from '../../request/errors.ts';
import type { ApiRequest } from '../../rest/endpoint.ts';
import { since } from '../../rest/microversions.ts';
import type { ConsumerBody } from '../allocations/bodies.ts';

/**
 * The configured project and user of old allocations without a consumer record: the online data migration gives the
 * allocations to these.
 */
export const incompleteOwner = ({ placement }: Config) => ({
  projectId: placement.incompleteConsumerProjectId,
  userId: placement.incompleteConsumerUserId,
});

/** The allocations of a consumer with its project, user and type; undefined where it has no allocations. */
export function contentOf(rows: readonly ConsumerAllocationRow[], config: Config): ConsumerContent | undefined {
  const [first] = rows;
  if (first === undefined) return undefined;
  const incomplete = incompleteOwner(config);
  return {
    allocations: amountsByProvider(
      rows.map(({ provider_uuid, class_name, used }) => [provider_uuid, class_name, used]),
    ),
    projectId: first.project_id ?? incomplete.projectId,
    userId: first.user_id ?? incomplete.userId,
    consumerType: first.consumer_type,
  };
}

/**
 * Whether, at a version, the generation of a consumer goes on after those of former consumers with the same UUID. Versions
 * of OpenStack Placement show that of the record, which begins at 1 again.
 */
export const goesOn = (version: number): boolean => version >= since.entityTags;

/** The generation of a consumer as answers to a request have it. */
export const generationFor = ({ version }: Pick<ApiRequest, 'version'>, consumer: ConsumerGenerations): number | null =>
  shownGeneration(consumer, goesOn(version));

/** The same for a row of allocations. */
export const generationOfRow = (
  request: Pick<ApiRequest, 'version'>,
  row: { readonly consumer_generation: number | null; readonly former_generations: number },
): number | null =>
  generationFor(request, { generation: row.consumer_generation, formerGenerations: row.former_generations });

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
