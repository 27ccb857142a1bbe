import type { Provider } from './provider.ts';

/** The providers of a fleet by small numbers, which are given again when a provider is gone: sets of them can be bits. */
export type Places = {
  readonly providers: readonly (Provider | undefined)[];
  take(provider: Provider): void;
  free(provider: Provider): void;
};

/** Begins with no provider. */
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
  };
}

/** The place of a provider that is in no fleet, or no more. */
export const nowhere = -1;
