import type { Provider } from '../fleet/model/provider.ts';
import type { ResolvedGroup } from './resolve.ts';

/** How one group is satisfied: by a provider for each of its resources, in order; a granular group by one provider. */
export type Choice = {
  readonly group: ResolvedGroup;
  readonly providers: readonly Provider[];
};

/** A choice of a granular group. */
export const granularChoice = (group: ResolvedGroup, provider: Provider): Choice => ({ group, providers: [provider] });

/** A candidate: a choice for each group of the request. */
export type Candidate = readonly Choice[];

/** The provider of one of the group's resources. */
export const providerOf = ({ group, providers }: Choice, index: number): Provider | undefined =>
  providers[group.granular ? 0 : index];

/** What a candidate takes of each provider, by class id: of a class that several groups ask for, the sum. */
export function takenByProvider(candidate: Candidate): ReadonlyMap<Provider, ReadonlyMap<number, number>> {
  const amounts = new Map<Provider, Map<number, number>>();
  for (const choice of candidate) {
    for (const [index, { classId, amount }] of choice.group.resources.entries()) {
      const provider = providerOf(choice, index);
      if (provider === undefined) continue;
      const ofProvider = amounts.get(provider) ?? new Map<number, number>();
      amounts.set(provider, ofProvider.set(classId, (ofProvider.get(classId) ?? 0) + amount));
    }
  }
  return amounts;
}
