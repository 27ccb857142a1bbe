import type { Config } from '../config/config.ts';
import type { Listening } from '../http/server/listen.ts';
import { readTls } from '../http/server/tls_files.ts';
import type { Log } from '../log/log.ts';
import { checkAuthentication } from './startup.ts';

/** What SIGHUP leaves alone, for the log. */
const unread = 'Policy files are read without a signal when they change; other options only at the next start.';

/** What SIGHUP does: it opens the log file again, and reads the TLS certificate and the service user of Keystone again. */
export async function renew(
  server: Listening,
  config: Config,
  { log, readAgain }: { readonly log: Log; readonly readAgain: () => Config },
): Promise<void> {
  const { logger } = log;
  const file = log.reopen() ? 'the log file was opened again' : 'there is no log file to open again';
  server.reopenLogs?.();
  const done = [file];
  const errors: unknown[] = [];
  const attempt = async (work: () => Promise<string> | string, failed: string): Promise<void> => {
    try {
      done.push(await work());
    } catch (error) {
      errors.push(error);
      done.push(failed);
    }
  };
  if (config.api.authStrategy === 'keystone') {
    await attempt(() => {
      const renewed = readAgain();
      checkAuthentication(renewed);
      server.renewServiceUser?.(renewed.keystoneAuthtoken);
      return 'the service user of [keystone_authtoken] was read again';
    }, 'the service user of [keystone_authtoken] stays as it was');
  }
  await attempt(async () => {
    const tls = await readTls(config.ssl);
    if (tls === undefined) return 'there is no TLS certificate to read again';
    server.renewTls(tls);
    return 'the TLS certificate was read again';
  }, 'the TLS certificate stays as it was');
  const line = `SIGHUP: ${done.slice(0, -1).join(', ')}, and ${done.at(-1)}. ${unread}`;
  if (errors.length === 0) logger.info(line);
  for (const err of errors) logger.error({ err }, line);
}
