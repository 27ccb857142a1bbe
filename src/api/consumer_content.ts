import type { ConsumerAllocationRow } from '../../db/statements/claims/read_allocations.ts';
import type { Config } from '../config/config.ts';
import { amountsByProvider, type ConsumerContent } from '../placement/entity_tag.ts';

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
