import type { ClaimWrite } from '../../db/statements/claims/claim_write.ts';

/** A claim of 2 VCPU on provider 1 for each of some consumers, judged while the provider was at generation 5. */
export const claim = (uuids: readonly string[], generation: number | null = null): ClaimWrite => ({
  providers: [{ providerId: 1, generation: 5, bump: 1 }],
  consumers: uuids.map((uuid) => ({
    uuid,
    generation,
    hasOldAllocations: false,
    projectExternalId: 'project',
    userExternalId: 'user',
    consumerType: null,
    etag: null,
    allocations: [{ providerId: 1, classId: 0, used: 2 }],
  })),
  inventories: [],
});
