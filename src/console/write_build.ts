import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { buildConsole } from './build.ts';

/*
 * Writes the files of the console, and each of them compressed, to dist/console: `npm run build` runs it for the package.
 */

const folder = path.join(import.meta.dirname, '..', '..', 'dist', 'console');
await mkdir(folder, { recursive: true });
for (const { name, bytes, br, gz } of await buildConsole()) {
  await writeFile(path.join(folder, name), bytes);
  await writeFile(path.join(folder, `${name}.br`), br);
  await writeFile(path.join(folder, `${name}.gz`), gz);
}
