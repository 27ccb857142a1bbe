import type { Claim, ConsumerClaim } from '../../src/claims/claim.ts';

/** A claim of some VCPU on one provider. The client knows nothing about the consumer, unless `more` says so. */
export const claimOn = (provider: string, uuid: string, amount: number, more: Partial<ConsumerClaim> = {}): Claim => ({
  consumers: [
    {
      uuid,
      knownGeneration: undefined,
      projectId: 'project',
      userId: 'user',
      consumerType: undefined,
      allocations: new Map([[provider, new Map([['VCPU', amount]])]]),
      ...more,
    },
  ],
  inventories: [],
});
