import type { Config } from '../../config/config.ts';
import { readPem } from '../../text/pem.ts';
import { messageOf } from '../../text/print.ts';

/** `[keystone_authtoken]` */
export type KeystoneSettings = Config['keystoneAuthtoken'];

/** The settings of the service user, which SIGHUP reads again. */
export const credentialKeys = [
  ...(['userId', 'username', 'password', 'userDomainId', 'userDomainName'] as const),
  ...(['projectId', 'projectName', 'projectDomainId', 'projectDomainName'] as const),
  ...(['defaultDomainId', 'defaultDomainName', 'systemScope'] as const),
] as const satisfies readonly (keyof KeystoneSettings)[];

/** The service user, and what its tokens are for. */
export type Credentials = Pick<KeystoneSettings, (typeof credentialKeys)[number]>;

/** Missing or unusable settings, one sentence for each problem. */
export function keystoneProblems(settings: KeystoneSettings): readonly string[] {
  const problems: string[] = [];
  const need = (what: string, ...values: readonly (string | undefined)[]): void => {
    if (values.every((value) => value === undefined)) problems.push(`[keystone_authtoken] ${what} is not set.`);
  };
  const { authUrl, username, userId, password, projectName, projectId, systemScope } = settings;
  need('auth_url', authUrl);
  if (authUrl !== undefined && !isHttpUrl(authUrl)) {
    problems.push('[keystone_authtoken] auth_url must be a URL such as http://keystone.example.com:5000/v3.');
  }
  need('username or user_id', username, userId);
  if (username !== undefined && userId === undefined) {
    need(
      'user_domain_name or user_domain_id',
      settings.userDomainName,
      settings.userDomainId,
      settings.defaultDomainName,
      settings.defaultDomainId,
    );
  }
  need('password', password);
  need('project_name or project_id', projectName, projectId, systemScope);
  if (projectName !== undefined && projectId === undefined) {
    need(
      'project_domain_name or project_domain_id',
      settings.projectDomainName,
      settings.projectDomainId,
      settings.defaultDomainName,
      settings.defaultDomainId,
    );
  }
  return problems;
}

/** How long a request waits for the answers of Keystone altogether, unless one attempt may take longer. */
const budgetSeconds = 10;

/** How long a request waits for the answers of Keystone altogether, in milliseconds. @param leastMs for tests */
export const keystoneTimeBudgetMs = (
  { httpConnectTimeout }: Pick<KeystoneSettings, 'httpConnectTimeout'>,
  leastMs = budgetSeconds * 1000,
): number => Math.max(leastMs, (httpConnectTimeout ?? 0) * 1000);

const isHttpUrl = (text: string): boolean => /^https?:\/\//.test(text) && URL.canParse(text);

/**
 * The address of Keystone's API version 3, without a slash at its end: operators write `auth_url` with or without
 * version.
 */
export function identityUrl(authUrl: string): string {
  const url = new URL(authUrl);
  const path = url.pathname.replace(/\/+$/, '').replace(/\/v(?:2\.0|3)$/, '');
  return `${url.origin}${path}/v3`;
}

/** The address of Keystone in answers to clients, without the user and the password that the setting may have. */
export function publicAddress({ wwwAuthenticateUri, authUrl }: KeystoneSettings): string {
  const address = wwwAuthenticateUri ?? authUrl ?? '';
  const url = URL.parse(address);
  if (url === null || (url.username === '' && url.password === '')) return address;
  url.username = '';
  url.password = '';
  return url.href;
}

/** How the TLS of connections to Keystone is set up, as `node:tls` has it. */
export type TlsOptions = {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
  readonly rejectUnauthorized: boolean;
};

/** @throws Error where a file cannot be read, or is empty. */
export function tlsOptions({ cafile, certfile, keyfile, insecure }: KeystoneSettings): TlsOptions {
  return {
    rejectUnauthorized: !insecure,
    ...(cafile === undefined ? {} : { ca: readFile('cafile', cafile) }),
    ...(certfile === undefined ? {} : { cert: readFile('certfile', certfile) }),
    // One file may hold both the certificate and the key.
    ...(certfile === undefined ? {} : { key: readFile('keyfile', keyfile ?? certfile) }),
  };
}

function readFile(option: string, file: string): string {
  try {
    return readPem(file);
  } catch (error) {
    const reason = messageOf(error);
    throw new Error(`The file of [keystone_authtoken] ${option} cannot be read: ${reason}.`, { cause: error });
  }
}
