import { readFileSync } from 'node:fs';
import path from 'node:path';

/** The flags of Node.js in `npm start`, so that tests and measurements run the service with the same. */
export const nodeFlags: readonly string[] = flagsOf(
  JSON.parse(readFileSync(path.join(import.meta.dirname, '..', '..', 'package.json'), 'utf8')).scripts.start,
);

/** The flags between `node` and the program in a command line. */
export function flagsOf(command: string): readonly string[] {
  return (/\bnode((?: --\S+)*) \S/.exec(command)?.[1] ?? '').split(' ').filter((flag) => flag !== '');
}
