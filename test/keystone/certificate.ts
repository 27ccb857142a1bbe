import { createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign } from 'node:crypto';

/** A certificate with its key, as PEM. */
export type Certificate = { readonly cert: string; readonly key: string };

/** A key and a self-signed certificate for 127.0.0.1 and localhost. @param seconds how long it is valid; an hour by default */
export const selfSigned = (seconds = 3600): Certificate => issue({ name: 'test', seconds });

/**
 * Makes a certificate for 127.0.0.1 and localhost, which may also issue others.
 *
 * @param options.seconds how long it is valid, from now on; below 0 it has ended
 * @param options.key of the certificate; a new one by default
 * @param options.issuer the certificate that signs the new one; if undefined, the new certificate is self-signed
 */
export function issue(options: {
  readonly name: string;
  readonly seconds: number;
  readonly key?: string;
  readonly issuer?: { readonly name: string; readonly key: string };
}): Certificate {
  const { name, seconds, issuer } = options;
  const privateKey =
    options.key === undefined
      ? generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
      : createPrivateKey(options.key);
  const publicKey = createPublicKey(privateKey);
  const named = (text: string): Buffer =>
    sequence(der(0x31, sequence(objectId(2, 5, 4, 3), der(0x0c, Buffer.from(text)))));
  const time = (milliseconds: number): Buffer =>
    der(
      0x17,
      Buffer.from(
        `${new Date(milliseconds)
          .toISOString()
          .replaceAll(/\.\d+|[-:T]/g, '')
          .slice(2)}`,
      ),
    );
  const now = Date.now();
  const extension = (id: Buffer, value: Buffer): Buffer => sequence(id, der(0x04, value));
  const algorithm = sequence(objectId(1, 2, 840, 10_045, 4, 3, 2)); // ecdsa-with-SHA256
  const content = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    named(issuer?.name ?? name),
    sequence(time(now - 60_000 + Math.min(0, seconds * 1000)), time(now + seconds * 1000)),
    named(name),
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(
        extension(objectId(2, 5, 29, 19), sequence(der(0x01, Buffer.from([0xff])))), // basicConstraints: a CA
        extension(
          objectId(2, 5, 29, 17),
          sequence(der(0x87, Buffer.from([127, 0, 0, 1])), der(0x82, Buffer.from('localhost'))),
        ), // subjectAltName
      ),
    ),
  );
  const signature = sign('sha256', content, issuer?.key ?? privateKey);
  const certificate = sequence(content, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), signature])));
  const lines = certificate.toString('base64').replaceAll(/.{64}/g, '$&\n');
  return {
    cert: `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`,
    key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  };
}

/** One value in DER: tag, length, content. */
function der(tag: number, content: Buffer): Buffer {
  const { length } = content;
  const header =
    length < 0x80 ? [tag, length] : length < 0x100 ? [tag, 0x81, length] : [tag, 0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from(header), content]);
}

const sequence = (...parts: readonly Buffer[]): Buffer => der(0x30, Buffer.concat(parts));

function objectId(first: number, second: number, ...rest: readonly number[]): Buffer {
  const bytes = rest.flatMap((arc) => {
    const groups = [arc & 0x7f];
    for (let left = arc >> 7; left > 0; left >>= 7) groups.unshift((left & 0x7f) | 0x80);
    return groups;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}
