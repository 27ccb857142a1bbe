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

/** When the first certificate of the chain ends, in milliseconds since 1970: clients refuse the chain from then on. */
export function endOf({ cert }: Pick<Tls, 'cert'>): number {
  const certificates = cert.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [cert];
  return Math.min(...certificates.map((certificate) => new X509Certificate(certificate).validToDate.getTime()));
}

async function readPem(option: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    throw new ConfigError([`The file of [ssl] ${option} cannot be read: ${messageOf(error)}.`]);
  }
}
