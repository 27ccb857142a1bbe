import net from 'node:net';
import type { Config } from '../config/config.ts';
import { keystoneProblems } from '../keystone/settings.ts';

/** @throws Error where the configuration asks for Keystone and does not say how to reach it. */
export function checkAuthentication({ api, keystoneAuthtoken }: Config): void {
  if (api.authStrategy === 'noauth2') return;
  const problems = keystoneProblems(keystoneAuthtoken);
  if (problems.length === 0) return;
  throw new Error(
    '[api] auth_strategy = keystone, which is the default once anything is configured, needs a service user: ' +
      `${problems.join(' ')} Or, on a trusted network, set [api] auth_strategy = noauth2 in placement.conf, or ` +
      'OS_API__AUTH_STRATEGY=noauth2 in the environment.',
  );
}

/** @throws Error where several processes are to serve a database that only one can have. */
export function checkWorkers({ api, placementDatabase }: Config): void {
  if (api.workers === 1 || placementDatabase.connection !== undefined) return;
  throw new Error(
    `[api] workers = ${api.workers} (or --workers) needs a PostgreSQL server, since the embedded database is for a single ` +
      'process. Set [placement_database] connection, or leave it at 1 worker.',
  );
}

/** What a service that nobody configured does; to be said at start. */
export function unconfiguredNotice({ api, placementDatabase }: Config): string {
  const { connection, embeddedPath } = placementDatabase;
  const database = connection === undefined ? `embedded database in ${embeddedPath}` : 'the database of DATABASE_URL';
  const reach = isLoopback(api.host) ? `${api.host} only` : `on ${api.host}`;
  return `No configuration was found: ${database}, no authentication (noauth2), ${reach}.`;
}

/** Warns of a service that trusts everybody and can be reached from elsewhere. */
export function exposureWarning({ api }: Config): string | undefined {
  if (api.authStrategy !== 'noauth2' || isLoopback(api.host)) return undefined;
  return (
    `With [api] auth_strategy = noauth2 whoever can reach ${api.host} may read and change everything. ` +
    'Listen on 127.0.0.1 ([api] host), or let nobody but trusted machines reach the port.'
  );
}

const loopback = new net.BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

function isLoopback(host: string): boolean {
  const family = net.isIP(host);
  return family === 0 ? host === 'localhost' : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
}
