import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** A file of deploy/, with its `${NAME}` filled in. @throws Error if a value is missing */
export async function filledTemplate(file: string, values: Readonly<Record<string, string | number>>): Promise<string> {
  const text = await readFile(path.join(import.meta.dirname, '..', '..', 'deploy', file), 'utf8');
  return text.replaceAll(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = values[name];
    if (value === undefined) throw new Error(`deploy/${file} needs a value of ${name}`);
    return String(value);
  });
}
