import type { IncomingMessage } from 'node:http';
import tls from 'node:tls';

/*
 * What requests to other servers share: Keystone, and the issuers of JSON Web Tokens.
 */

/** The certificate authorities of Node.js and of the system, if this version of Node.js can list the latter. */
export const trustedAuthorities = (): string[] | undefined =>
  tls.getCACertificates === undefined
    ? undefined
    : [...new Set([...tls.getCACertificates('default'), ...tls.getCACertificates('system')])];

/** The body of an answer. @throws Error where the connection breaks; `tooLong` where the body has more than `mostBytes` */
export function readAnswer(response: IncomingMessage, mostBytes: number, tooLong: () => Error): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    response.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > mostBytes) response.destroy(tooLong());
      else chunks.push(chunk);
    });
    response.on('error', reject);
    response.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')));
  });
}
