/** A server of a database URL. For an empty part node-postgres uses its default. */
export type Host = { readonly host: string; readonly port: string };

/** Which of several servers is wanted: libpq's values of `target_session_attrs`. */
const targets = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const;
/** One of these values. */
export type Target = (typeof targets)[number];

/** libpq's values of `sslmode`. */
const tlsModes = ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'];

/** The servers of a database URL, and how one of them is chosen. */
export type Hosts = {
  readonly hosts: readonly Host[];
  readonly target: Target;
  /** Whether a server without TLS will do (`sslmode=prefer`). */
  readonly isTlsOptional: boolean;
  /** Whether a connection tries a random server first, instead of the first one in the list. */
  readonly isRandom: boolean;
  /** How long one server may take to answer; undefined without such a parameter in the URL. */
  readonly connectTimeoutMs: number | undefined;
};

/** The parts of a database URL. */
export const databaseUrlShape =
  /^(?<start>\w+:\/\/(?:[^@/?]*@)?)(?<authority>[^/?]*)(?<path>[^?]*)(?:\?(?<query>.*))?$/s;

/**
 * Reads the servers of a `postgresql://` URL as libpq does: from `a,b:5433`, or from the parameters `host` and `port`,
 * which take precedence. User and password must be escaped.
 *
 * @throws Error with the mistake, and without the password
 */
export function hostsOf(url: string): Hosts {
  const { authority = '', query = '' } = databaseUrlShape.exec(url)?.groups ?? {};
  const parameters = new URLSearchParams(query);
  const written = authority.split(',').map(splitPort);
  const hosts = parameters.get('host')?.split(',') ?? written.map(({ host }) => host);
  const ports = parameters.get('port')?.split(',') ?? written.map(({ port }) => port);
  if (ports.length !== 1 && ports.length !== hosts.length) {
    throw new Error(`must have one port, or one for each of the ${hosts.length} hosts`);
  }
  const target = parameters.get('target_session_attrs') ?? 'any';
  if (!isTarget(target)) throw new Error(`must have one of ${targets.join(', ')} as target_session_attrs`);
  const balance = parameters.get('load_balance_hosts') ?? 'disable';
  if (balance !== 'disable' && balance !== 'random')
    throw new Error('must have disable or random as load_balance_hosts');
  const tlsMode = parameters.get('sslmode') ?? 'disable';
  if (!tlsModes.includes(tlsMode)) throw new Error(`must have one of ${tlsModes.join(', ')} as sslmode`);
  if (parameters.get('sslrootcert') === 'system') {
    throw new Error(
      'must name a file as sslrootcert, or none: sslmode=verify-full alone trusts the authorities of Node.js, and with ' +
        'NODE_OPTIONS=--use-system-ca in the environment those of the system as well',
    );
  }
  const connectTimeoutMs = Number(parameters.get('connect_timeout') ?? 0) * 1000;
  return {
    hosts: hosts.map((host, index) => ({ host, port: (ports.length === 1 ? ports[0] : ports[index]) ?? '' })),
    target,
    isTlsOptional: ['allow', 'prefer'].includes(tlsMode),
    isRandom: balance === 'random',
    connectTimeoutMs: connectTimeoutMs > 0 ? connectTimeoutMs : undefined,
  };
}

const isTarget = (text: string): text is Target => (targets as readonly string[]).includes(text); // as compared

/** Splits `host:port`. An IPv6 address is in brackets. */
export function splitPort(text: string): Host {
  const [, host = '', port = ''] = /^(\[[^\]]*\]|[^:]*):?(.*)$/s.exec(text) ?? [];
  return { host, port };
}
