import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** An example of a document, with the output that it prints. */
export type Example = { readonly name: string; readonly code: string; readonly output: string };

export const project = path.join(import.meta.dirname, '..', '..');

const read = (document: string): Promise<string> => readFile(path.join(project, 'docs', document), 'utf8');

/** All examples of a document in their order: each a block of TypeScript with a name, and a block of text. */
export async function readExamples(document = 'client.md'): Promise<readonly Example[]> {
  const text = await read(document);
  const blocks = text.matchAll(/^```ts (\S+)\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/gm);
  return [...blocks].map(([, name = '', code = '', output = '']) => ({ name, code, output }));
}

/** The commands of `placement` in a document, with the output that is documented; '' where none is. */
export async function readSession(document: string) {
  const blocks = [...(await read(document)).matchAll(/^```console\n([\s\S]*?)^```$/gm)];
  const session = blocks.map(([, block = '']) => block).join('');
  const commands = [...session.matchAll(/^\$ placement (.*)\n((?:(?!\$ ).*\n)*)/gm)];
  return commands.map(([, line = '', output = '']) => ({ line, output }));
}

/**
 * Writes examples into a folder, where they can be compiled and run. They import the published package; there they import its
 * source.
 */
export async function writeExamples(folder: string, examples: readonly Example[]): Promise<void> {
  const source = path.join(project, 'src', 'client', 'index.ts');
  for (const { name, code } of examples) {
    await writeFile(path.join(folder, `${name}.ts`), code.replace("'placement/client'", `'${source}'`));
  }
  const typeRoots = [path.join(project, 'node_modules', '@types')];
  const compilerOptions = { typeRoots, rewriteRelativeImportExtensions: false };
  const settings = { extends: path.join(project, 'tsconfig.json'), compilerOptions, include: ['*.ts'] };
  await writeFile(path.join(folder, 'tsconfig.json'), JSON.stringify(settings));
  await writeFile(path.join(folder, 'package.json'), '{"type": "module"}');
}

/** Compiles the examples of a folder. */
export async function compileExamples(folder: string): Promise<void> {
  const compiler = path.join(project, 'node_modules', '.bin', 'tsc');
  await run(compiler, ['--noEmit', '-p', folder]).catch(({ stdout }) => assert.fail(stdout));
}

/** Runs an example. @returns what it prints */
export async function runExample(folder: string, name: string, env: Readonly<Record<string, string>>): Promise<string> {
  const options = { env: { PATH: process.env.PATH, ...env }, timeout: 60_000 };
  return (await run(process.execPath, [path.join(folder, `${name}.ts`)], options)).stdout;
}
