import type { Holding } from '../../src/client/holdings.ts';

/** The keys by which holdings are summed. */
export const sumKeys = ['project', 'user', 'type'] as const;
export type SumKey = (typeof sumKeys)[number];

/** What all consumers of a project, a user or a type hold together. */
export type HoldingSum = {
  readonly key: string;
  readonly consumers: number;
  readonly amounts: ReadonlyMap<string, number>;
};

/** The fields of a holding that a sum needs. */
type Summed = Pick<Holding, 'consumer' | 'project_id' | 'user_id' | 'consumer_type' | 'resources'>;

const keyOf = ({ project_id, user_id, consumer_type }: Summed, by: SumKey): string =>
  ({ project: project_id, user: user_id, type: consumer_type })[by];

/** Sums holdings page by page, so that only one page is in memory. */
export function openSums(by: SumKey): { add(page: readonly Summed[]): void; sums(): readonly HoldingSum[] } {
  const consumers = new Map<string, Set<string>>();
  const amounts = new Map<string, Map<string, number>>();
  return {
    add: (page) => {
      for (const holding of page) {
        const key = keyOf(holding, by);
        const known = consumers.get(key);
        if (known === undefined) consumers.set(key, new Set([holding.consumer]));
        else known.add(holding.consumer);
        const sums = amounts.get(key) ?? new Map<string, number>();
        amounts.set(key, sums);
        for (const [name, amount] of Object.entries(holding.resources)) sums.set(name, (sums.get(name) ?? 0) + amount);
      }
    },
    sums: () =>
      Array.from(amounts, ([key, each]) => ({ key, consumers: consumers.get(key)?.size ?? 0, amounts: each })),
  };
}
