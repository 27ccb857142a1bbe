import { readFileSync } from 'node:fs';

/**
 * Reads a file of certificates or a key.
 *
 * @throws Error with the path where it cannot be read, or is empty, as while another program writes it. Node.js takes an empty text for
 *   none: it would trust every authority that it knows, or serve without a certificate.
 */
export function readPem(file: string): string {
  const text = readFileSync(file, 'utf8');
  if (text === '') throw new Error(`${file} is empty`);
  return text;
}
