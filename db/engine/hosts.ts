import pg from 'pg';
import { ConnectionNotMade, failureOf, isPassing, isTlsRefused, wrongServerCode } from './failures.ts';
import { databaseUrlShape, type Host, type Hosts, type Target } from './host_list.ts';

/**
 * The URL of one server, in a form that node-postgres accepts for every kind of host: an address, a name or a socket
 * folder.
 *
 * @param isPlain whether the connection is without TLS, whatever the URL says
 */
function urlOf(url: string, { host, port }: Host, isPlain: boolean): string {
  const { start = '', path = '', query = '' } = databaseUrlShape.exec(url)?.groups ?? {};
  const parameters = new URLSearchParams(query);
  for (const name of ['host', 'port', 'target_session_attrs', 'load_balance_hosts', 'connect_timeout']) {
    parameters.delete(name);
  }
  if (host !== '') parameters.set('host', host.replace(/^\[(.*)\]$/, '$1'));
  if (port !== '') parameters.set('port', port);
  if (isPlain) parameters.set('sslmode', 'disable');
  return `${start}${path === '' ? '/' : path}${parameters.size === 0 ? '' : `?${parameters}`}`;
}

/** The error of node-postgres where a server has no TLS. */
const noTls = 'The server does not support SSL connections';

/** Takes a connection of a pool. @throws the error of the server, or of the network, if there is none */
export type TakeClient = () => Promise<pg.PoolClient>;

/** Which server new connections are sent to. The pools of one database share this search. */
type HostSearch = {
  /** The index of the server that is tried next: the one that answered last. */
  current: number;
  /** The error of the last attempt on each server; undefined if the attempt succeeded. */
  readonly failures: (Error | undefined)[];
  /** The servers that have no TLS, where the URL does not insist on it. */
  readonly plain: Set<number>;
};

/** A search that has tried no server yet. */
export const newHostSearch = ({ hosts, isRandom }: Hosts): HostSearch => ({
  current: isRandom ? Math.floor(Math.random() * hosts.length) : 0,
  failures: hosts.map(() => undefined),
  plain: new Set(),
});

/**
 * Makes a connection of node-postgres, which reads the files of TLS that the URL names. Where one cannot be read, or that of `sslrootcert`
 * is empty (Node.js would trust every authority that it knows), `connect` fails. Nothing may be thrown here: the pool makes connections in
 * events of sockets as well, where nothing catches it.
 */
export function newClient(options: pg.ClientConfig): pg.Client {
  try {
    const client = new pg.Client(options);
    const tls: unknown = client.ssl; // declared as a boolean, but the options of TLS where the URL has some
    if (typeof tls === 'object' && tls !== null && 'ca' in tls && tls.ca === '')
      throw new Error('the file of sslrootcert is empty');
    return client;
  } catch (error) {
    const client = new pg.Client({});
    const failure = new ConnectionNotMade(failureOf(error), { cause: error });
    const refuse = (done: (error: Error) => void): void => process.nextTick(done, failure);
    client.connect = refuse as typeof client.connect; // the pool calls it with a call back only
    return client;
  }
}

/** What a pool makes connections of, by `new`: of a function that returns an object, it gives this object. */
export function clientsBy(make: (options: pg.ClientConfig) => pg.Client): typeof pg.Client {
  function Client(options: pg.ClientConfig): pg.Client {
    return make(options);
  }
  return Client as unknown as typeof pg.Client; // the pool calls it with `new` only
}

/**
 * Opens a pool that connects to the first of several servers that answers and is of the wanted kind. libpq has this
 * search, node-postgres lacks it. Each new connection begins with the server that was found last: so only the first
 * connection after a failover waits for the servers that do not answer.
 *
 * @param config without connectionString; its connectionTimeoutMillis is for all servers together
 * @param url names the servers
 */
export function openHostsPool(
  config: pg.PoolConfig,
  url: string,
  list: Hosts,
  search: HostSearch,
): { readonly pool: pg.Pool; readonly take: TakeClient } {
  const { hosts, target } = list;
  const { connectionTimeoutMillis = 0 } = config;
  const eachTimeoutMs = list.connectTimeoutMs ?? Math.ceil(connectionTimeoutMillis / hosts.length);
  const indexOf = new WeakMap<pg.ClientBase, number>();
  /** Errors that a server caused, in contrast to errors of the pool itself. */
  const causes = new WeakSet<Error>();
  /** Whether the same server is tried without TLS after this error: as with libpq also where it has TLS, and the handshake fails. */
  const lacksTls = (error: Error): boolean => list.isTlsOptional && (error.message === noTls || isTlsRefused(error));

  const failed = (index: number, error: Error): void => {
    causes.add(error);
    if (lacksTls(error)) {
      search.plain.add(index);
      return;
    }
    // TLS comes first again: the server may have been changed.
    search.plain.delete(index);
    search.failures[index] = error;
    // If several connections to one server fail at the same time, only the first failure moves on to the next server.
    if (search.current === index) search.current = (index + 1) % hosts.length;
  };

  const hostClient = (options: pg.ClientConfig): pg.Client => {
    const index = search.current;
    const host = hosts[index] ?? { host: '', port: '' };
    const client = newClient({
      ...options,
      connectionString: urlOf(url, host, search.plain.has(index)),
      connectionTimeoutMillis: eachTimeoutMs,
    });
    indexOf.set(client, index);
    const connect = client.connect.bind(client) as (done: (error?: Error) => void) => void; // one of its two forms
    const noted = (done: (error?: Error) => void): void =>
      connect((error) => {
        if (error) failed(index, error);
        done(error);
      });
    client.connect = noted as typeof client.connect; // the pool calls it with a call back only
    return client;
  };

  const check = async (client: pg.ClientBase): Promise<void> => {
    const index = indexOf.get(client) ?? 0;
    // For prefer-standby: a primary is accepted when all other servers have failed.
    const isLast = search.failures.every((error, other) => other === index || error !== undefined);
    const wanted = target === 'prefer-standby' ? (isLast ? 'any' : 'standby') : target;
    try {
      await requireKind(client, wanted, eachTimeoutMs);
    } catch (error) {
      if (error instanceof Error) failed(index, error);
      throw error;
    }
    search.failures[index] = undefined;
    if (list.isRandom) search.current = Math.floor(Math.random() * hosts.length);
  };

  const pool = new pg.Pool({ ...config, Client: clientsBy(hostClient), onConnect: check });
  // For prefer-standby the servers are tried a second time, when a primary is accepted as well.
  const most = target === 'prefer-standby' ? 2 * hosts.length : hosts.length;
  const take: TakeClient = async () => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await pool.connect();
      } catch (error) {
        const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
        if (!(cause instanceof Error && causes.has(cause))) throw error;
        if (lacksTls(cause)) {
          attempt -= 1;
          continue;
        }
        // As in libpq, the search ends when a server refuses the user or the database.
        if (isFinal(cause)) {
          const host = hosts[search.failures.indexOf(cause)];
          if (host !== undefined) cause.message = `${nameOfHost(host)}: ${cause.message}`;
          throw cause;
        }
        if (attempt >= most) throw allFailed(hosts, search);
      }
    }
  };
  return { pool, take };
}

/**
 * Whether a server refused the connection for good. Errors of a server have a `severity`, errors of the network have
 * none.
 */
const isFinal = (error: Error): boolean => 'severity' in error && !isPassing(error);

/** An error with the reason why each server cannot be used. */
function allFailed(hosts: readonly Host[], { failures }: HostSearch): AggregateError {
  const known = hosts.flatMap((host, index) => {
    const error = failures[index];
    return error === undefined ? [] : [{ error, text: `${nameOfHost(host)}: ${failureOf(error)}` }];
  });
  return new AggregateError(
    known.map(({ error }) => error),
    known.map(({ text }) => text).join('; '),
  );
}

/** A server as `host:port` or as a socket folder, with the defaults of libpq. */
export function nameOfHost({ host, port }: Host, env: Readonly<Record<string, string | undefined>> = process.env) {
  const name = host || env.PGHOST || 'localhost';
  return name.startsWith('/') ? name : `${name}:${port || env.PGPORT || 5432}`;
}

/** @throws Error naming the kind of the server, if it is not the wanted kind */
async function requireKind(
  client: pg.ClientBase,
  wanted: Exclude<Target, 'prefer-standby'>,
  timeoutMs: number,
): Promise<void> {
  if (wanted === 'any') return;
  const text = `select pg_is_in_recovery() as "isStandby", current_setting('transaction_read_only') = 'on' as "isReadOnly"`;
  const { rows } = await client.query({ text, ...(timeoutMs > 0 ? { query_timeout: timeoutMs } : {}) });
  const [{ isStandby, isReadOnly }] = rows as [{ isStandby: boolean; isReadOnly: boolean }]; // the columns of the query
  const kinds = { 'read-write': !isReadOnly, 'read-only': isReadOnly, primary: !isStandby, standby: isStandby };
  if (kinds[wanted]) return;
  const kind = `${isStandby ? 'a standby' : 'a primary'}${isReadOnly && !isStandby ? ' that is read-only' : ''}`;
  throw Object.assign(new Error(`the server is ${kind}, and "${wanted}" is wanted`), { code: wrongServerCode });
}
