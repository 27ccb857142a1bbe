import { type Microversion, type RequestSince, type Since, versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, pathOf, type Tagged, type WriteOptions } from './operation.ts';

/** The aggregates that a provider is in, by UUID. */
export type Aggregates<Version extends Microversion = Microversion> = {
  readonly aggregates: readonly string[];
} & Since<Version, '1.19', { readonly resource_provider_generation: number }> &
  Tagged<Version>;

/** The new list of aggregates of a provider. It replaces the old list. */
export type NewAggregates<Version extends Microversion = Microversion> = {
  readonly aggregates: readonly string[];
} & RequestSince<Version, '1.19', { readonly resource_provider_generation: number }>;

/** From 1.1 on. */
export type AggregateCalls<Version extends Microversion> = {
  show(provider: string, options?: CallOptions): Promise<Aggregates<Version>>;
  /** Replaces the aggregates of a provider. Before 1.19 no generation guards the write. */
  set(provider: string, aggregates: NewAggregates<Version>, options?: WriteOptions): Promise<Aggregates<Version>>;
};

const since = versionNumber('1.1');
/** From 1.19 on the provider's generation guards its aggregates. Before 1.19 the body is only the list. */
const guardedSince = versionNumber('1.19');

/** Makes the calls about aggregates. */
export function aggregateCalls<Version extends Microversion>(ask: Ask): AggregateCalls<Version> {
  const path = (provider: string) => pathOf('resource_providers', provider, 'aggregates');
  return {
    show: (provider, options) => ask({ method: 'GET', path: path(provider), since }, options),
    set: (provider, aggregates, options) =>
      ask(
        {
          method: 'PUT',
          path: path(provider),
          since,
          body: (version) => (version >= guardedSince ? aggregates : aggregates.aggregates),
          repeatable: (version) => version >= guardedSince,
        },
        options,
      ),
  };
}
