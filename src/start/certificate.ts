import type { Logger } from 'pino';
import { endOf, type Tls } from '../http/server/tls_files.ts';

/** So long before the end of the certificate the log says so. Those who renew by themselves do it a month before. */
const soonMs = 14 * 86_400_000;
const dayMs = 86_400_000;

/**
 * Logs that the certificate ends soon, or has ended: when it is taken into use, and each day from then on.
 *
 * @returns a function that takes another certificate; undefined without TLS
 */
export function watchCertificate(logger: Pick<Logger, 'warn'>): (tls: Tls | undefined) => void {
  let inUse: Tls | undefined;
  const tell = (): void => {
    const line = inUse === undefined ? undefined : certificateWarning(endOf(inUse), Date.now());
    if (line !== undefined) logger.warn(line);
  };
  setInterval(tell, dayMs).unref();
  return (tls) => {
    inUse = tls;
    tell();
  };
}

/** What the log says of a certificate that ends within two weeks; undefined for any other. */
export function certificateWarning(endsMs: number, nowMs: number): string | undefined {
  if (endsMs - nowMs > soonMs) return undefined;
  const when = new Date(endsMs).toISOString().replace('.000', '');
  const is = endsMs <= nowMs ? `ended at ${when}, and clients refuse it` : `ends at ${when}`;
  return `The certificate of [ssl] cert_file ${is}: renew the file, and send SIGHUP.`;
}
