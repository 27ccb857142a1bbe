import type { Logger } from 'pino';
import { openRepeatedFailures } from '../../log/repeated_failures.ts';
import type { Identity, ServiceIdentity } from '../../rest/identity.ts';
import { messageOf } from '../../text/print.ts';
import { type Access, isAccessAllowed } from './access_rules.ts';
import { KeystoneBusy, openKeystoneQueue, ValidationAbandoned } from './queue.ts';
import { openServiceToken, type ServiceUserTrial } from './service_token.ts';
import { identityUrl, type KeystoneSettings, keystoneProblems, keystoneTimeBudgetMs, tlsOptions } from './settings.ts';
import { KeystoneFault, openTokenCache, type Token } from './token.ts';
import { type KeystoneAttempt, KeystoneUnreachable, openTransport } from './transport.ts';
import { type Caller, type TimeBudget, tokenValidation } from './validate.ts';

/** The identity of a request, or why it is unknown. */
export type Outcome = Identity | 'unauthorized' | 'Keystone is unavailable' | 'Keystone is busy';

/** Finds the identity of requests by Keystone. */
export type Keystone = {
  authenticate(headers: Headers, access: Access, caller?: Caller): Promise<Outcome>;
  /**
   * Finds the identity of a long-lived request again. This is neither counted nor logged, and says that Keystone is unavailable also with
   * delay_auth_decision.
   */
  authenticateAgain(headers: Headers, access: Access, caller?: Caller): Promise<Outcome>;
  /** Calls this observer from now on. */
  observe(observer: KeystoneObserver): void;
  /** Checks whether Keystone issues a token to the service user of these settings. The token is not used. */
  tryServiceUser(settings: KeystoneSettings): Promise<ServiceUserTrial>;
  /** Uses another user, or another password, for the next token of this service. @throws Error where settings are missing */
  renewServiceUser(settings: KeystoneSettings): void;
  close(): void;
};

/** Counts the requests to Keystone and their outcomes. */
export type KeystoneObserver = {
  attempted(attempt: KeystoneAttempt): void;
  /** A request with a token was authenticated, or was not. */
  decided(outcome: 'accepted' | 'unauthorized' | 'unavailable' | 'busy'): void;
  /** Takes a function that returns how many validations wait for their turn. */
  countQueued(size: () => number): void;
};

/** The log for tokens that could not be validated, and for unsafe settings. */
export type KeystoneLog = Pick<Logger, 'info' | 'warn'>;

/** How many tokens Keystone validates at a time, each by a separate connection, and how many validations may wait for that. */
const atATime = 64;
const mostWaiting = 5_000;
const maxCachedTokens = 20_000;
const maxInvalidTokens = 10_000;
/**
 * Short, since another Keystone of the same cluster may have issued the token just now, and this one does not know it
 * yet.
 */
const invalidSeconds = 10;

/**
 * Authentication as Keystone's own middleware (keystonemiddleware) does it. No request is sent to Keystone before the
 * first request with a token.
 *
 * @param limits for tests: how long a request waits for Keystone, and how many validations may wait for their turn
 * @throws Error where settings are missing.
 */
export function openKeystone(
  settings: KeystoneSettings,
  log: KeystoneLog,
  limits: { readonly budgetMs?: number; readonly mostWaiting?: number } = {},
): Keystone {
  const url = usableUrl(settings);
  const budgetMs = keystoneTimeBudgetMs(settings, limits.budgetMs);
  let observer: KeystoneObserver | undefined;
  const transport = openTransport({
    url,
    tls: () => tlsOptions(settings),
    timeoutMs: settings.httpConnectTimeout ? settings.httpConnectTimeout * 1000 : budgetMs,
    timeoutSource: settings.httpConnectTimeout
      ? '[keystone_authtoken] http_connect_timeout'
      : `${budgetMs / 1000} s for all tries, the default of [keystone_authtoken] http_connect_timeout`,
    maxRetries: settings.httpRequestMaxRetries,
    maxConnections: atATime,
    onAttempt: (attempt) => observer?.attempted(attempt),
  });
  const queue = openKeystoneQueue({ atATime, mostWaiting: limits.mostWaiting ?? mostWaiting });
  const serviceToken = openServiceToken(settings, transport);
  const validate = tokenValidation({
    transport,
    queue,
    serviceToken,
    cache: openTokenCache<Token>({ seconds: settings.tokenCacheTime, limit: maxCachedTokens }),
    invalid: openTokenCache<true>({
      seconds: Math.min(invalidSeconds, settings.tokenCacheTime),
      limit: maxInvalidTokens,
    }),
    wantsCatalog: settings.includeServiceCatalog && settings.serviceType !== undefined,
  });
  if (settings.insecure && url.startsWith('https:')) {
    log.warn(
      'With [keystone_authtoken] insecure = true any program on the way to Keystone can read the password of the service ' +
        'user and say who a user is. Set cafile to the certificate authority of Keystone instead.',
    );
  }
  let warned = false;
  const failures = openRepeatedFailures(log);

  /** The service of a service token; undefined where the token is invalid or lacks a role that is required. */
  async function serviceOf(
    token: string,
    caller: Caller,
    budget: TimeBudget,
  ): Promise<{ identity: Identity; mayExpire: boolean } | undefined> {
    const valid = await validate(token, false, caller, budget);
    if (valid === undefined) return undefined;
    const { identity } = valid;
    const hasRole = identity.roles.some((role) => settings.serviceTokenRoles.includes(role));
    if (!hasRole && settings.serviceTokenRolesRequired) return undefined;
    if (!hasRole && !warned) {
      log.warn(
        'A service token without any role of [keystone_authtoken] service_token_roles was accepted. Give the user of ' +
          'that service such a role, and set service_token_roles_required = true.',
      );
      warned = true;
    }
    return { identity, mayExpire: hasRole };
  }

  async function identify(headers: Headers, access: Access, caller: Caller): Promise<Outcome> {
    const ofService = headers.get('x-service-token')?.trim();
    const budget: TimeBudget = { leftMs: budgetMs };
    const service = ofService ? await serviceOf(ofService, caller, budget) : undefined;
    const userToken = (headers.get('x-auth-token') ?? headers.get('x-storage-token'))?.trim();
    if (!userToken) return 'unauthorized';
    const token = await validate(userToken, service?.mayExpire ?? false, caller, budget);
    if (token === undefined || !isAccessAllowed(token, access, settings.serviceType, service !== undefined)) {
      return 'unauthorized';
    }
    // With delay_auth_decision such a service token is ignored.
    if (ofService && service === undefined && !settings.delayAuthDecision) return 'unauthorized';
    if (service === undefined) return token.identity;
    // The token of a service may keep an expired token of a user valid.
    const ends = [token.expiresAtMs, ...(service.mayExpire ? [service.identity.expiresAtMs ?? 0] : [])];
    return { ...token.identity, expiresAtMs: Math.max(...ends), service: asService(service.identity) };
  }

  /** Why the identity of a request is not known; undefined for unexpected errors. */
  function failureOf(error: unknown): Exclude<Outcome, Identity | 'unauthorized'> | undefined {
    if (error instanceof KeystoneBusy) return 'Keystone is busy';
    // If the client has disconnected, the outcome is not sent.
    const isKnown = [KeystoneFault, KeystoneUnreachable, ValidationAbandoned].some((kind) => error instanceof kind);
    return isKnown ? 'Keystone is unavailable' : undefined;
  }

  return {
    authenticate: async (headers, access, caller = unknownCaller) => {
      try {
        const outcome = await identify(headers, access, caller);
        observer?.decided(outcome === 'unauthorized' ? outcome : 'accepted');
        return outcome;
      } catch (error) {
        const failure = failureOf(error);
        if (failure === undefined) throw error;
        if (!(error instanceof ValidationAbandoned)) {
          observer?.decided(failure === 'Keystone is busy' ? 'busy' : 'unavailable');
          failures.failed(`A token could not be validated: ${messageOf(error)}`);
        }
        return settings.delayAuthDecision ? 'unauthorized' : failure;
      }
    },
    authenticateAgain: async (headers, access, caller = unknownCaller) => {
      try {
        return await identify(headers, access, caller);
      } catch (error) {
        const failure = failureOf(error);
        if (failure === undefined) throw error;
        return failure;
      }
    },
    observe: (metrics) => {
      observer = metrics;
      metrics.countQueued(() => queue.size);
    },
    tryServiceUser: (wanted) => serviceToken.tryOut(wanted, performance.now() + budgetMs),
    renewServiceUser: (renewed) => {
      usableUrl(renewed);
      serviceToken.renew(renewed);
    },
    close: () => transport.close(),
  };
}

const unknownCaller: Caller = { client: '', gone: () => new AbortController().signal };

/** The address of Keystone's API. @throws Error where settings are missing or cannot be used */
function usableUrl(settings: KeystoneSettings): string {
  const problems = keystoneProblems(settings);
  if (settings.authUrl === undefined || problems.length > 0) throw new Error(problems.join(' '));
  return identityUrl(settings.authUrl);
}

const asService = ({ userId, userDomainId, projectId, projectDomainId, roles }: Identity): ServiceIdentity => ({
  userId,
  userDomainId,
  projectId,
  projectDomainId,
  roles,
});
