import { drainOf } from '../../src/cli/drained.ts';
import { sentenceOf } from '../../src/cli/unmet_sentence.ts';
import type { UnmetCondition } from '../../src/client/candidate_questions.ts';
import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { visible } from '../text.ts';

/** Why a condition is not met, in a sentence. @param providers those that the page knows: it names a drained one as drained */
export function reasonOf(condition: UnmetCondition, providers: ReadonlyMap<string, WholeProvider>): string {
  const provider = providers.get(condition.resource_provider.uuid);
  const isDrained = provider !== undefined && drainOf(provider) === 'drained';
  return visible(sentenceOf(condition, new Set(isDrained ? [provider.uuid] : [])));
}
