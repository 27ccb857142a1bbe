import type { Provider } from '../fleet/provider.ts';
import type { ResolvedGroup } from './resolve.ts';

/** How one group is satisfied: for each of its resources the provider, in order; for a granular group all the same. */
export type Choice = {
  readonly group: ResolvedGroup;
  readonly providers: readonly Provider[];
  /** How it is written, kept by whoever writes it: one choice is part of many candidates. */
  shown: ShownChoice | undefined;
};

/** Members of the JSON objects `allocations` and `mappings`; the first is empty for a group that asks for no resources. */
export type ShownChoice = { readonly allocations: string; readonly mapping: string };

/** A candidate: a choice for each group of the request. */
export type Candidate = readonly Choice[];

/** The provider of a group's resource: a granular group has one for all. */
export const providerOf = ({ group, providers }: Choice, place: number): Provider | undefined =>
  providers[group.granular ? 0 : place];
