/** A server of a database URL. For an empty part node-postgres uses its default. */
export type Host = { readonly host: string; readonly port: string };

/** Which of several servers is wanted: libpq's values of `target_session_attrs`. */
const targets = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const;
/** One of these values. */
export type Target = (typeof targets)[number];

/** The servers of a database URL, and how one of them is chosen. */
export type Hosts = {
  readonly hosts: readonly Host[];
  readonly target: Target;
  /** Whether a connection tries a random server first, instead of the first one in the list. */
  readonly isRandom: boolean;
  /** How long one server may take to answer; undefined if the URL does not say. */
  readonly connectTimeoutMs: number | undefined;
};

const shape = /^(?<start>\w+:\/\/(?:[^@/?]*@)?)(?<authority>[^/?]*)(?<path>[^?]*)(?:\?(?<query>.*))?$/s;

/**
 * Reads the servers of a `postgresql://` URL as libpq does: from `a,b:5433`, or from the parameters `host` and `port`,
 * which take precedence. User and password must be escaped.
 *
 * @throws Error that says what is wrong, without the password
 */
export function hostsOf(url: string): Hosts {
  const { authority = '', query = '' } = shape.exec(url)?.groups ?? {};
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
  const connectTimeoutMs = Number(parameters.get('connect_timeout') ?? 0) * 1000;
  return {
    hosts: hosts.map((host, place) => ({ host, port: (ports.length === 1 ? ports[0] : ports[place]) ?? '' })),
    target,
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

/**
 * The URL of one server, in a form that node-postgres accepts for every kind of host: an address, a name or a socket
 * folder.
 */
export function urlOf(url: string, { host, port }: Host): string {
  const { start = '', path = '', query = '' } = shape.exec(url)?.groups ?? {};
  const parameters = new URLSearchParams(query);
  for (const name of ['host', 'port', 'target_session_attrs', 'load_balance_hosts', 'connect_timeout']) {
    parameters.delete(name);
  }
  if (host !== '') parameters.set('host', host.replace(/^\[(.*)\]$/, '$1'));
  if (port !== '') parameters.set('port', port);
  return `${start}${path === '' ? '/' : path}${parameters.size === 0 ? '' : `?${parameters}`}`;
}
