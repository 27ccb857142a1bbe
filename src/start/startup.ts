import { keystoneProblems } from '../access/keystone/settings.ts';
import { jwtProblems } from '../access/tokens/issuers.ts';
import { parseShapes, ShapeError } from '../api/candidates/shapes.ts';
import { type Config, ConfigError } from '../config/config.ts';
import { type LoadedConfig, wrongValue } from '../config/load.ts';
import { isLoopback } from '../http/own_hosts.ts';
import { socketFileOf } from '../text/socket_address.ts';

/** @throws ConfigError if the configuration selects Keystone, but lacks settings to reach it, or issuers whose settings are wrong */
export function checkAuthentication({ api, keystoneAuthtoken, jwt }: Config): void {
  if (api.authStrategy === 'tokens') {
    const mistakes = jwtProblems(jwt);
    if (mistakes.length > 0) throw new ConfigError(mistakes);
  }
  if (api.authStrategy !== 'keystone') return;
  const problems = keystoneProblems(keystoneAuthtoken);
  if (problems.length === 0) return;
  throw new ConfigError([
    '[api] auth_strategy = keystone, which is the default once anything is configured, needs a service user: ' +
      `${problems.join(' ')} Without Keystone set [api] auth_strategy = tokens in placement.conf: the service has tokens of its own, ` +
      'see docs/teams.md. Or, on a trusted network, noauth2: no authentication (OS_API__AUTH_STRATEGY=noauth2 in the environment).',
  ]);
}

/** @throws ConfigError if the configuration has several workers on the embedded database, which only one process can open */
export function checkWorkers({ api, placementDatabase }: Config): void {
  if (api.workers === 1 || placementDatabase.connection !== undefined) return;
  throw new ConfigError([
    `[api] workers = ${api.workers} (or --workers) needs a PostgreSQL server, because the embedded database is for a single ` +
      'process. Set [placement_database] connection, or leave it at 1 worker.',
  ]);
}

/** @throws ConfigError if `[metrics] shapes` is no list of queries with names */
export function checkShapes(loaded: LoadedConfig): void {
  try {
    parseShapes(loaded.config.metrics.shapes);
  } catch (error) {
    throw error instanceof ShapeError ? wrongValue(loaded, ['metrics', 'shapes'], error.message) : error;
  }
}

/** The notice at the start of a service without configuration: its database, authentication and address. */
export function unconfiguredNotice({ api, placementDatabase }: Config): string {
  const { connection, embeddedPath } = placementDatabase;
  const database = connection === undefined ? `embedded database in ${embeddedPath}` : 'the database of DATABASE_URL';
  const reach = isLoopback(api.host) ? `${api.host} only` : `on ${api.host}`;
  return `No configuration was found: ${database}, no authentication (noauth2), ${reach}.`;
}

/** The warning for a service without authentication that other machines can reach. */
export function exposureWarning({ api }: Config): string | undefined {
  // The permissions of a UNIX socket decide which users of the machine may connect.
  const isLocal = isLoopback(api.host) || socketFileOf(api.host) !== undefined;
  if (api.authStrategy !== 'noauth2' || isLocal) return undefined;
  return (
    `With [api] auth_strategy = noauth2 every client that can reach ${api.host} may read and change everything. ` +
    'Listen on 127.0.0.1 ([api] host), or let only trusted machines reach the port.'
  );
}
