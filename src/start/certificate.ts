import type { Logger } from 'pino';
import { endOf, type Tls } from '../http/server/tls_files.ts';

/** How long before the end of the certificate the log begins to warn. Programs that renew certificates do so a month before the end. */
const soonMs = 14 * 86_400_000;
const dayMs = 86_400_000;

/**
 * Logs that the certificate expires soon, or has expired: when it comes into use, and each day from then on.
 *
 * @returns a function that takes another certificate; undefined without TLS
 */
export function watchCertificate(logger: Pick<Logger, 'warn'>): (tls: Tls | undefined) => void {
  let inUse: Tls | undefined;
  const warn = (): void => {
    const line = inUse === undefined ? undefined : certificateWarning(endOf(inUse), Date.now());
    if (line !== undefined) logger.warn(line);
  };
  setInterval(warn, dayMs).unref();
  return (tls) => {
    inUse = tls;
    warn();
  };
}

/** The line for the log about a certificate that expires within two weeks; undefined for any other. */
function certificateWarning(endsMs: number, nowMs: number): string | undefined {
  if (endsMs - nowMs > soonMs) return undefined;
  const when = new Date(endsMs).toISOString().replace('.000', '');
  const is = endsMs <= nowMs ? `ended at ${when}, and clients refuse it` : `ends at ${when}`;
  return `The certificate of [ssl] cert_file ${is}: renew the file, and send SIGHUP.`;
}
