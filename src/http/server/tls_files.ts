import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { type Config, ConfigError } from '../../config/config.ts';
import { messageOf } from '../../text/print.ts';

/** A certificate chain and its key as PEM text. */
export type Tls = { readonly cert: string; readonly key: string };

/**
 * Reads the files of `[ssl]`; undefined where none is configured, for plain HTTP.
 *
 * @throws ConfigError with the option where a file cannot be read, or the two do not belong together.
 */
export async function readTls({ certFile, keyFile }: Config['ssl']): Promise<Tls | undefined> {
  if (certFile === undefined || keyFile === undefined) return undefined;
  const cert = await readPem('cert_file', certFile);
  const key = await readPem('key_file', keyFile);
  try {
    createSecureContext({ cert, key });
  } catch (error) {
    throw new ConfigError([
      `TLS cannot be set up by [ssl] cert_file = ${certFile} and key_file = ${keyFile}: ${messageOf(error)}. ` +
        'Both must be PEM files, and the key that of the first certificate.',
    ]);
  }
  return { cert, key };
}

/**
 * When clients begin to refuse the chain, in milliseconds since 1970: the first certificate of the file has expired, or an intermediate
 * certificate that clients need to verify it. Of several certificates of one issuer, such as a renewed one beside the former, the latest
 * counts. Roots do not count, since clients use their own, and neither do certificates outside of the chain.
 */
export function endOf({ cert }: Pick<Tls, 'cert'>): number {
  const [first, ...others] = (cert.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [cert]).map(
    (certificate) => new X509Certificate(certificate),
  );
  const endAmong = (certificate: X509Certificate, left: readonly X509Certificate[]): number => {
    const issuers = certificate.checkIssued(certificate) ? [] : left.filter((each) => certificate.checkIssued(each));
    const ends = issuers.map((issuer) =>
      issuer.checkIssued(issuer)
        ? Number.POSITIVE_INFINITY
        : endAmong(
            issuer,
            left.filter((each) => each !== issuer),
          ),
    );
    const own = certificate.validToDate.getTime();
    return ends.length === 0 ? own : Math.min(own, Math.max(...ends));
  };
  return first === undefined ? Number.POSITIVE_INFINITY : endAmong(first, others);
}

async function readPem(option: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`The file of [ssl] ${option} cannot be read: ${messageOf(error)}.`]);
  }
}
