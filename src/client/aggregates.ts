import type { AskedSince, Microversion, Since } from './microversions.ts';
import { answered, type Call, type CallOptions, pathOf, type Tagged, type WriteOptions } from './operation.ts';

/** The aggregates that a provider is in, by UUID. */
export type Aggregates<Version extends Microversion = Microversion> = {
  readonly aggregates: readonly string[];
} & Since<Version, '1.19', { readonly resource_provider_generation: number }> &
  Tagged<Version>;

/** The aggregates that a provider is to be in, and no others. */
export type NewAggregates<Version extends Microversion = Microversion> = {
  readonly aggregates: readonly string[];
} & AskedSince<Version, '1.19', { readonly resource_provider_generation: number }>;

/** From 1.1 on. */
export type AggregateCalls<Version extends Microversion> = {
  show(provider: string, options?: CallOptions): Promise<Aggregates<Version>>;
  /** Replaces the aggregates of a provider; before 1.19 without a guard. */
  set(provider: string, aggregates: NewAggregates<Version>, options?: WriteOptions): Promise<Aggregates<Version>>;
};

const since = 1;
/** From 1.19 on the provider's generation guards its aggregates; before, the body is a bare list. */
const guardedSince = 19;

/** Makes the calls about aggregates. */
export function aggregateCalls<Version extends Microversion>(call: Call): AggregateCalls<Version> {
  const path = (provider: string) => pathOf('resource_providers', provider, 'aggregates');
  return {
    show: (provider, options) => answered(call({ method: 'GET', path: path(provider), since }, options)),
    set: (provider, aggregates, options) =>
      answered(
        call(
          {
            method: 'PUT',
            path: path(provider),
            since,
            body: (minor) => (minor >= guardedSince ? aggregates : aggregates.aggregates),
            repeatable: (minor) => minor >= guardedSince,
          },
          options,
        ),
      ),
  };
}
