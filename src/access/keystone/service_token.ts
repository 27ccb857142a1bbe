import * as v from 'valibot';
import { messageOf } from '../../text/print.ts';
import type { Credentials } from './settings.ts';
import { KeystoneFault, parseJson } from './token.ts';
import type { Transport } from './transport.ts';

/** The token with which this service validates the tokens of requests at Keystone. */
export type ServiceToken = {
  /**
   * Obtains a token where there is none, or where it expires soon. All calls that wait share one request.
   *
   * @param deadlineMs by `performance.now()`; calls that share a request use the deadline of the first one
   * @throws KeystoneFault
   */
  get(deadlineMs: number): Promise<string>;
  /** Forgets a token that Keystone does not accept any more, so that the next `get` obtains a new one. */
  discard(token: string): void;
  /** Requests a token of another user, or with another password, and does not use it. */
  tryOut(settings: Credentials, deadlineMs: number): Promise<ServiceUserTrial>;
  /** Uses another user, or another password, for the next token. */
  renew(settings: Credentials): void;
};

/** Why Keystone issues no token for a service user, and whether it refuses this user; undefined if it issues one. */
export type ServiceUserTrial = { readonly isRefused: boolean; readonly reason: string } | undefined;

/** Keystone does not know the service user, or refuses the password. */
class ServiceUserRefused extends KeystoneFault {}

/** The token is replaced this long before it expires, as Keystone's libraries do. */
const renewBeforeMs = 30_000;

const answerSchema = v.object({ token: v.object({ expires_at: v.string() }) });

/** @throws KeystoneUnreachable from `get` */
export function openServiceToken(first: Credentials, transport: Transport): ServiceToken {
  let settings: Credentials = first;
  let current: { readonly token: string; readonly expiresAtMs: number } | undefined;
  let obtaining: Promise<string> | undefined;

  async function ask(settings: Credentials, deadlineMs: number): Promise<NonNullable<typeof current>> {
    const request = {
      method: 'POST',
      path: '/auth/tokens?nocatalog',
      headers: {},
      json: credentialsBody(settings),
    } as const;
    const { status, headers, text } = await transport.send(request, deadlineMs);
    const token = headers['x-subject-token'];
    if (status === 401) {
      throw new ServiceUserRefused(
        'Keystone does not accept the service user. Correct username, password and domains in [keystone_authtoken], ' +
          'and send SIGHUP to placement-api.',
      );
    }
    const parsed = v.safeParse(answerSchema, parseJson(text));
    if (status !== 201 || typeof token !== 'string' || !parsed.success) {
      throw new KeystoneFault(`Keystone answers ${status} to the request for a token of the service user.`);
    }
    return { token, expiresAtMs: Date.parse(parsed.output.token.expires_at) };
  }

  async function obtain(deadlineMs: number): Promise<string> {
    current = await ask(settings, deadlineMs);
    return current.token;
  }

  return {
    get: (deadlineMs) => {
      if (current !== undefined && current.expiresAtMs - Date.now() > renewBeforeMs)
        return Promise.resolve(current.token);
      obtaining ??= obtain(deadlineMs).finally(() => {
        obtaining = undefined;
      });
      return obtaining;
    },
    discard: (token) => {
      if (current?.token === token) current = undefined;
    },
    tryOut: (wanted, deadlineMs) =>
      ask(wanted, deadlineMs).then(
        () => undefined,
        (error: unknown) => ({ isRefused: error instanceof ServiceUserRefused, reason: messageOf(error) }),
      ),
    renew: (renewed) => {
      settings = renewed;
    },
  };
}

/** The body of `POST /v3/auth/tokens` for a password. */
function credentialsBody(settings: Credentials): unknown {
  const { userId, username, password, projectId, projectName, systemScope } = settings;
  const domain = (name: string | undefined, id: string | undefined) => {
    const [domainName, domainId] =
      name === undefined && id === undefined ? [settings.defaultDomainName, settings.defaultDomainId] : [name, id];
    return domainId === undefined ? { name: domainName } : { id: domainId };
  };
  const user =
    userId === undefined
      ? { name: username, domain: domain(settings.userDomainName, settings.userDomainId) }
      : { id: userId };
  const project =
    projectId === undefined
      ? { name: projectName, domain: domain(settings.projectDomainName, settings.projectDomainId) }
      : { id: projectId };
  return {
    auth: {
      identity: { methods: ['password'], password: { user: { ...user, password } } },
      scope: systemScope === undefined ? { project } : { system: { all: true } },
    },
  };
}
