import type { Provider } from './provider.ts';

/**
 * Numbers the providers of a fleet, so that a set of providers can be bits. The number of a removed provider is used
 * again.
 */
export type Places = {
  readonly providers: readonly (Provider | undefined)[];
  take(provider: Provider): void;
  free(provider: Provider): void;
  /** Puts a copy of a provider, which has its place, where the provider was. */
  replace(copy: Provider): void;
};

/** Creates an empty list of places. */
export function createPlaces(): Places {
  const providers: (Provider | undefined)[] = [];
  const free: number[] = [];
  return {
    providers,
    take: (provider) => {
      provider.place = free.pop() ?? providers.length;
      providers[provider.place] = provider;
    },
    free: (provider) => {
      providers[provider.place] = undefined;
      free.push(provider.place);
      provider.place = nowhere;
    },
    replace: (copy) => {
      providers[copy.place] = copy;
    },
  };
}

/** The place of a provider that is not in a fleet. */
export const nowhere = -1;
