import { readFileSync } from 'node:fs';
import { type Command, Option } from 'commander';
import {
  type Auth,
  type ConnectOptions,
  type Credentials,
  connect,
  keystone,
  type Placement,
  type Scope,
  token,
} from '../client/index.ts';
import { messageOf } from '../text/print.ts';
import { socketFileOf, socketProblem } from '../text/socket_address.ts';

/** Options of the OpenStack client for the connection to a cloud. Each can also be set by an environment variable. */
const connectionOptions: readonly (readonly [flags: string, help: string])[] = [
  [
    '--os-endpoint <url>',
    'the URL of the placement service, or unix:/FILE for its UNIX socket; default: from the catalog',
  ],
  ['--os-token <token>', 'a token; of a service without Keystone the user, such as admin'],
  ['--os-auth-url <url>', 'where Keystone is'],
  ['--os-username <name>', 'the user'],
  ['--os-password <password>', "the user's password; better in the environment"],
  ['--os-user-domain-name <name>', "the user's domain"],
  ['--os-project-name <name>', 'the project to work in'],
  ['--os-project-domain-name <name>', "the project's domain"],
  ['--os-region-name <name>', 'the region of the endpoint'],
  ['--os-interface <name>', 'the interface of the endpoint: public, internal or admin'],
  ['--os-cacert <file>', 'certificates of authorities to trust, as PEM'],
  [
    '--os-placement-api-version <version>',
    '1.N, 2.N or latest, also --version 2.N; default: the newest that client and server know',
  ],
];

/**
 * A command line in which `--version 2.6` is the longer option of OpenStack's client. `--version` alone stays: it prints the version of
 * this program.
 */
export const versionAsOption = (argv: readonly string[]): readonly string[] =>
  argv.map((word, index) =>
    word === '--version' && /^(?:\d+\.\d+|latest)$/.test(argv[index + 1] ?? '') ? '--os-placement-api-version' : word,
  );

const variableOf = (option: Option): string => option.long?.slice('--'.length).replaceAll('-', '_').toUpperCase() ?? '';

/** Adds the options to a command. One text below the help of the command explains all of them. */
export function addConnectionOptions(program: Command): void {
  const options = connectionOptions.map(([flags, help]) => new Option(flags, help).hideHelp());
  for (const option of options) program.addOption(option.env(variableOf(option)));
  const lines = options.map((option) => {
    const names = [option.long?.padEnd(26), variableOf(option).padEnd(24)].join(' ');
    return `  ${names} ${option.description}`;
  });
  program.addHelpText(
    'after',
    `
How the service is reached, by options or the environment:
${lines.join('\n')}

A service without Keystone needs OS_ENDPOINT and OS_TOKEN:
  export OS_ENDPOINT=http://127.0.0.1:8778 OS_TOKEN=admin    # or OS_ENDPOINT=unix:/run/placement/placement.sock
One with Keystone needs what the file openrc of the cloud sets: OS_AUTH_URL, OS_USERNAME, OS_PASSWORD, OS_PROJECT_NAME and so
on. OS_USER_ID, OS_PROJECT_ID, OS_USER_DOMAIN_ID, OS_PROJECT_DOMAIN_ID, OS_SYSTEM_SCOPE, OS_APPLICATION_CREDENTIAL_ID and
OS_APPLICATION_CREDENTIAL_SECRET are understood too.

"placement COMMAND --help" explains a command, such as "placement candidate list --help".`,
  );
}

/** The options as commander returns them, from the command line or the environment. */
export type ConnectionFlags = {
  readonly osEndpoint?: string;
  readonly osToken?: string;
  readonly osAuthUrl?: string;
  readonly osUsername?: string;
  readonly osPassword?: string;
  readonly osUserDomainName?: string;
  readonly osProjectName?: string;
  readonly osProjectDomainName?: string;
  readonly osRegionName?: string;
  readonly osInterface?: string;
  readonly osCacert?: string;
  readonly osPlacementApiVersion?: string;
};

/** The largest number of attempts of a call. It is small, because a user waits for the result. */
const attempts = 4;

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Makes a client from the options and the environment.
 *
 * @throws Error naming the missing options; VersionError for an invalid version
 */
export function openPlacement(given: ConnectionFlags, environment: Environment): Placement {
  const flags = withoutEmpty(given);
  const env = withoutEmpty(environment);
  if (flags.osCacert !== undefined) trust(flags.osCacert);
  const address = flags.osEndpoint ?? env.OS_URL;
  const options = {
    ...reached(address),
    version: flags.osPlacementApiVersion,
    attempts,
  };
  const credentials = flags.osAuthUrl === undefined ? undefined : credentialsOf(flags, env);
  if (flags.osAuthUrl === undefined || (options.endpoint !== undefined && credentials === undefined)) {
    return connect({ ...options, auth: tokenOf(flags, address, env) });
  }
  if (credentials === undefined) {
    throw new Error(
      'The credentials are missing. Set OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME, or OS_TOKEN, beside OS_AUTH_URL.',
    );
  }
  return connect({ ...options, auth: keystoneOf(flags.osAuthUrl, credentials, flags, env) });
}

/** How an address is reached. Requests to a UNIX socket have a name of the host that each service accepts. */
function reached(address: string | undefined): Pick<ConnectOptions, 'endpoint' | 'fetch'> {
  const file = socketFileOf(address ?? '');
  if (address === undefined || file === undefined) return { endpoint: address };
  const problem = socketProblem(file);
  if (problem !== undefined) throw new Error(`OS_ENDPOINT is "${address}". It ${problem}.`);
  return {
    endpoint: 'http://localhost',
    fetch: async (...asked) => {
      // What it needs takes long to load, and is for sockets alone.
      const { socketFetch } = await import('./socket_fetch.ts');
      return socketFetch(file, address)(...asked);
    },
  };
}

function tokenOf(flags: ConnectionFlags, endpoint: string | undefined, env: Environment): Auth {
  if (endpoint === undefined) {
    const cloud = env.OS_CLOUD === undefined ? '' : ' (OS_CLOUD and clouds.yaml are not read.)';
    throw new Error(
      'The URL of the placement service is missing. Without Keystone: export OS_ENDPOINT=http://127.0.0.1:8778 ' +
        `OS_TOKEN=admin. With Keystone: source the file openrc of your cloud, which sets OS_AUTH_URL and more.${cloud}`,
    );
  }
  if (flags.osToken === undefined) {
    throw new Error(
      `The credentials for ${endpoint} are missing. Without Keystone: export OS_TOKEN=admin. With Keystone: set ` +
        'OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME.',
    );
  }
  return token(flags.osToken);
}

function credentialsOf(flags: ConnectionFlags, env: Environment): Credentials | undefined {
  const { OS_APPLICATION_CREDENTIAL_ID: id, OS_APPLICATION_CREDENTIAL_SECRET: secret, OS_USER_ID: userId } = env;
  if (id !== undefined && secret !== undefined) return { method: 'application credential', id, secret };
  const { osToken: token, osUsername: name, osPassword: password } = flags;
  const isForPassword = /password$/.test(env.OS_AUTH_TYPE ?? '');
  if (token !== undefined && !isForPassword) return { method: 'token', token };
  if (name === undefined && userId === undefined) return undefined;
  if (password === undefined) throw new Error(`The password of ${name ?? userId} is missing. Set OS_PASSWORD.`);
  const user = {
    ...(userId === undefined ? {} : { id: userId }),
    ...(name === undefined ? {} : { name }),
    domainId: env.OS_USER_DOMAIN_ID ?? env.OS_DEFAULT_DOMAIN_ID,
    domainName: flags.osUserDomainName ?? env.OS_DEFAULT_DOMAIN_NAME,
  };
  return { method: 'password', user, password };
}

function keystoneOf(authUrl: string, credentials: Credentials, flags: ConnectionFlags, env: Environment): Auth {
  return keystone({
    authUrl,
    credentials,
    // An application credential belongs to one project, so Keystone does not accept a scope with it.
    scope: credentials.method === 'application credential' ? undefined : scopeOf(flags, env),
    interface: interfaceOf(flags.osInterface),
    region: flags.osRegionName,
  });
}

function scopeOf(flags: ConnectionFlags, env: Environment): Scope | undefined {
  if (env.OS_SYSTEM_SCOPE !== undefined) return { system: 'all' };
  const id = env.OS_PROJECT_ID ?? env.OS_TENANT_ID;
  const name = flags.osProjectName ?? env.OS_TENANT_NAME;
  if (id !== undefined) return { project: { id } };
  if (name !== undefined) {
    return {
      project: {
        name,
        domainId: env.OS_PROJECT_DOMAIN_ID ?? env.OS_DEFAULT_DOMAIN_ID,
        domainName: flags.osProjectDomainName ?? env.OS_DEFAULT_DOMAIN_NAME,
      },
    };
  }
  if (env.OS_DOMAIN_ID !== undefined) return { domain: { id: env.OS_DOMAIN_ID } };
  return env.OS_DOMAIN_NAME === undefined ? undefined : { domain: { name: env.OS_DOMAIN_NAME } };
}

function interfaceOf(text: string | undefined): 'public' | 'internal' | 'admin' | undefined {
  // Older openrc files have publicURL.
  const name = text?.replace(/URL$/, '');
  if (name === undefined || name === 'public' || name === 'internal' || name === 'admin') return name;
  throw new Error(`OS_INTERFACE is "${text}". Set it to public, internal or admin.`);
}

function trust(file: string): void {
  // The module takes long to load, and only this option needs it.
  const tls = process.getBuiltinModule('node:tls');
  if (typeof tls.setDefaultCACertificates !== 'function') {
    throw new Error(
      `Node.js ${process.version} takes no further authorities here. Set NODE_EXTRA_CA_CERTS=${file} instead.`,
    );
  }
  try {
    const authorities = readFileSync(file, 'utf8');
    // Node.js takes a text without a certificate, and then trusts nothing more than before.
    if (!authorities.includes('CERTIFICATE-----')) throw new Error('it has no certificate in PEM');
    tls.setDefaultCACertificates([...tls.getCACertificates('default'), authorities]);
  } catch (error) {
    throw new Error(`OS_CACERT names ${file}, which cannot be used: ${messageOf(error)}.`, { cause: error });
  }
}

/** A variable with an empty value counts as not set, as in the OpenStack client. */
const withoutEmpty = <Values extends object>(values: Values): Partial<Values> =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '')) as Partial<Values>; // a part of it
