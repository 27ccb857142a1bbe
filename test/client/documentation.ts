import { readFile } from 'node:fs/promises';
import path from 'node:path';

/** An example of docs/client.md, with the output that it prints. */
export type Example = { readonly name: string; readonly code: string; readonly output: string };

export const project = path.join(import.meta.dirname, '..', '..');

/** All examples in their order: each a block of TypeScript with a name, and a block of text. */
export async function readExamples(): Promise<readonly Example[]> {
  const text = await readFile(path.join(project, 'docs', 'client.md'), 'utf8');
  const blocks = text.matchAll(/^```ts (\S+)\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/gm);
  return [...blocks].map(([, name = '', code = '', output = '']) => ({ name, code, output }));
}
