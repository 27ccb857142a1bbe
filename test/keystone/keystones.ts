import { type Keystone, type Outcome, openKeystone } from '../../src/access/keystone/authenticate.ts';
import type { KeystoneSettings } from '../../src/access/keystone/settings.ts';
import type { Caller } from '../../src/access/keystone/validate.ts';
import { defaultConfig } from '../../src/config/config.ts';
import type { Identity } from '../../src/rest/identity.ts';
import { type StandIn, settingsFor, withStandIn } from './stand_in.ts';

export type World = {
  readonly standIn: StandIn;
  readonly keystone: Keystone;
  /** The log, as `level: line`. */
  readonly logged: readonly string[];
  /** The outcome of a request with this token. */
  outcome(token?: string, headers?: Readonly<Record<string, string>>, caller?: Caller): Promise<Outcome>;
};

export const completeSettings = (more: Partial<KeystoneSettings>): KeystoneSettings => ({
  ...defaultConfig.keystoneAuthtoken,
  ...more,
});

/** Calls back with a stand-in for Keystone, and a service that uses it. @param limits other ones than those of the service */
export function withKeystone(
  more: Partial<KeystoneSettings>,
  use: (world: World) => Promise<void>,
  limits?: Parameters<typeof openKeystone>[2],
): Promise<void> {
  return withStandIn(async (standIn) => {
    const logged: string[] = [];
    const at =
      (level: string) =>
      (...entry: readonly unknown[]) =>
        void logged.push(`${level}: ${entry.at(-1)}`);
    const settings = completeSettings({ ...settingsFor(standIn), ...more });
    const keystone = openKeystone(settings, { info: at('info'), warn: at('warn') }, limits);
    try {
      await use({
        standIn,
        keystone,
        logged,
        outcome: (token, headers = {}, caller = undefined) =>
          keystone.authenticate(
            new Headers({ ...(token === undefined ? {} : { 'x-auth-token': token }), ...headers }),
            {
              method: 'GET',
              path: '/resource_providers',
            },
            caller,
          ),
      });
    } finally {
      keystone.close();
    }
  });
}

/** The user of an outcome, or the outcome itself if it is a refusal. */
export const userOf = (outcome: Outcome): string => (typeof outcome === 'string' ? outcome : outcome.userId);

export const identityOf = (outcome: Outcome): Identity => {
  if (typeof outcome === 'string') throw new Error(`The request is ${outcome}.`);
  return outcome;
};
