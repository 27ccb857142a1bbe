import { hash, randomBytes } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** The beginning of these tokens, by which people and secret scanners recognise them. */
const mark = 'plc_';
const secretBytes = 32;
const secretLength = 43;
const checksumLength = 6;
/** How many characters of a token are shown: some 36 bits of its secret. */
const shownLength = mark.length + 6;

/** A new token, and the stored part of it. */
export type MadeToken = { readonly text: string; readonly hash: string; readonly prefix: string };

/**
 * Makes a token: `plc_`, 256 random bits as base64url, and the CRC-32 of that as base64url. A mistyped token is refused by its checksum,
 * without a query to the database.
 */
export function makeToken(): MadeToken {
  const secret = randomBytes(secretBytes).toString('base64url');
  const text = `${mark}${secret}${checksumOf(secret)}`;
  return { text, hash: hashOf(text), prefix: text.slice(0, shownLength) };
}

/** Whether a text has the form and the checksum of a token that this service has made. */
export function isToken(text: string): boolean {
  if (!isMarked(text) || text.length !== mark.length + secretLength + checksumLength) return false;
  const secret = text.slice(mark.length, -checksumLength);
  return checksumOf(secret) === text.slice(-checksumLength);
}

/** Whether a text looks like a token that this service has made. */
export const isMarked = (text: string): boolean => text.startsWith(mark);

/** The SHA-256 of a token, as hexadecimal digits: by it the token is found, so that its text is never compared. */
export const hashOf = (text: string): string => hash('sha256', text, 'hex');

function checksumOf(secret: string): string {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(crc32(secret));
  return bytes.toString('base64url');
}
