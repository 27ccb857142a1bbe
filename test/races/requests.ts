import { type Amounts, partsOf } from './arena.ts';

/** The allocations that a client wants for one consumer. */
export type Wish = {
  readonly uuid: string;
  readonly wanted: Amounts;
  /** The generation that the client sends from 1.28 on. */
  readonly generation: number | null;
};

export type WriteRequest = {
  readonly method: 'PUT' | 'POST' | 'DELETE';
  readonly path: string;
  readonly minor: number;
  readonly body?: unknown;
  readonly wishes: readonly Wish[];
};

/** PUT /allocations/{consumer}, in the format of the version. */
export const putRequest = (minor: number, wish: Wish): WriteRequest => ({
  method: 'PUT',
  path: `/allocations/${wish.uuid}`,
  minor,
  body: consumerBody(minor, wish),
  wishes: [wish],
});

/** POST /allocations over several consumers. */
export const postRequest = (minor: number, wishes: readonly Wish[]): WriteRequest => ({
  method: 'POST',
  path: '/allocations',
  minor,
  body: Object.fromEntries(wishes.map((wish) => [wish.uuid, consumerBody(minor, wish)])),
  wishes,
});

export const deleteRequest = (minor: number, uuid: string): WriteRequest => ({
  method: 'DELETE',
  path: `/allocations/${uuid}`,
  minor,
  wishes: [{ uuid, wanted: new Map(), generation: null }],
});

function consumerBody(minor: number, { wanted, generation }: Wish): unknown {
  const byProvider: Record<string, { resources: Record<string, number> }> = {};
  for (const [slot, amount] of wanted) {
    const [provider, resourceClass] = partsOf(slot);
    byProvider[provider] ??= { resources: {} };
    byProvider[provider].resources[resourceClass] = amount;
  }
  const list = Object.entries(byProvider).map(([uuid, { resources }]) => ({ resource_provider: { uuid }, resources }));
  return {
    allocations: minor < 12 ? list : byProvider,
    ...(minor >= 8 ? { project_id: `project ${minor}`, user_id: 'racer' } : {}),
    ...(minor >= 28 ? { consumer_generation: generation } : {}),
    ...(minor >= 38 ? { consumer_type: 'INSTANCE' } : {}),
  };
}
