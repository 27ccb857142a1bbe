import { drainOf } from '../../src/cli/drain_marks.ts';
import { sentenceOf } from '../../src/cli/unmet_sentence.ts';
import type { Explanation, UnmetCondition } from '../../src/client/candidate_questions.ts';
import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { sharingTrait } from '../../src/placement/inventory.ts';
import { amountText, visible } from '../text.ts';

/** Why a condition is not met, in a sentence. @param providers the known providers, by which the sentence says that one is drained */
export function reasonOf(condition: UnmetCondition, providers: ReadonlyMap<string, WholeProvider>): string {
  const provider = providers.get(condition.resource_provider.uuid);
  const isDrained = provider !== undefined && drainOf(provider) === 'drained';
  const resourceClass = condition.value.split(':')[0] ?? '';
  const textOf = (amount: number) => amountText(resourceClass, amount);
  return visible(sentenceOf(condition, new Set(isDrained ? [provider.uuid] : []), textOf));
}

/**
 * The trees to show, the nearest first: hosts before pools that only share, without trees that are excluded because the query is about
 * another tree.
 */
export function worthwhile(
  nearest: Explanation['nearest'],
  providers: ReadonlyMap<string, WholeProvider>,
): Explanation['nearest'] {
  const isPool = ({ root }: Explanation['nearest'][number]) =>
    providers.get(root.uuid)?.traits.includes(sharingTrait) ?? false;
  return nearest
    .filter(({ unmet }) => unmet.every(({ reason }) => reason !== 'tree'))
    .toSorted((a, b) => Number(isPool(a)) - Number(isPool(b)));
}
