import { hasSqlstate, isNotPermitted, isRefusedLogin, isUnavailable, sqlstate } from '../../db/engine/failures.ts';
import { ConfigError } from '../config/config.ts';
import { ListenError } from '../http/server/address.ts';
import { ExitError, sysexits } from '../text/sysexits.ts';

/**
 * The exit code for a failure: 78 if the configuration or a policy file is wrong, also if it names a database that the
 * server does not have; 77 if the database refuses the role (password, privileges); 69 if the database cannot be
 * reached; 71 if the address cannot be listened on; that of an `ExitError`; and 1 for anything else.
 */
export function exitCodeOf(error: unknown): number {
  if (error instanceof ExitError) return error.exitCode;
  // Before the errors of the network: the name of a host may be unknown in both.
  if (error instanceof ListenError) return sysexits.osError;
  if (error instanceof ConfigError || hasSqlstate(error, sqlstate.unknownDatabase)) return sysexits.config;
  if (isRefusedLogin(error) || isNotPermitted(error)) return sysexits.noPermission;
  if (isUnavailable(error)) return sysexits.unavailable;
  return error instanceof Error && error.cause !== undefined ? exitCodeOf(error.cause) : 1;
}
