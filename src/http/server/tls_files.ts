import { X509Certificate } from 'node:crypto';
import { createSecureContext } from 'node:tls';
import { type Config, ConfigError } from '../../config/config.ts';
import { readPem } from '../../text/pem.ts';
import { messageOf } from '../../text/print.ts';

/** A certificate chain and its key as PEM text. */
export type Tls = { readonly cert: string; readonly key: string };

/**
 * Reads the files of `[ssl]`; undefined where none is configured, for plain HTTP.
 *
 * @throws ConfigError with the option where a file cannot be read or is empty, or the two do not belong together.
 */
export function readTls({ certFile, keyFile }: Config['ssl']): Tls | undefined {
  if (certFile === undefined || keyFile === undefined) return undefined;
  const cert = readFile('cert_file', certFile);
  const key = readFile('key_file', keyFile);
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
  return first === undefined ? Number.POSITIVE_INFINITY : endOfChain(first, others);
}

const isRoot = (certificate: X509Certificate): boolean => certificate.checkIssued(certificate);

/** @param others the certificates that may have issued it, or that may be further up */
function endOfChain(certificate: X509Certificate, others: readonly X509Certificate[]): number {
  const ownEnd = certificate.validToDate.getTime();
  const issuers = others.filter((each) => certificate.checkIssued(each));
  if (issuers.length === 0 || issuers.some(isRoot)) return ownEnd;
  const ends = issuers.map((issuer) => {
    const above = others.filter((each) => each !== issuer);
    return endOfChain(issuer, above);
  });
  return Math.min(ownEnd, Math.max(...ends));
}

function readFile(option: string, file: string): string {
  try {
    return readPem(file);
  } catch (error) {
    throw new ConfigError([`The file of [ssl] ${option} cannot be read: ${messageOf(error)}.`]);
  }
}
