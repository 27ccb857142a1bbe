import type { Provider } from '../fleet/provider.ts';
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
export const providerOf = ({ group, providers }: Choice, place: number): Provider | undefined =>
  providers[group.granular ? 0 : place];
