import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { ApiError } from '../request/errors.ts';
import type { BuiltFile } from './build.ts';

/** A body of an answer, and its entity tag. */
export type Content = { readonly bytes: Uint8Array<ArrayBuffer>; readonly etag: string };

/** A file of the console, in the encodings in which it can be sent. */
export type ConsoleFile = {
  readonly name: string;
  readonly type: string;
  readonly plain: Content;
  readonly br: Content;
  readonly gzip: Content;
};

/** The files of the console by name, and the names of the files that the page loads. */
export type ConsoleFiles = {
  readonly byName: ReadonlyMap<string, ConsoleFile>;
  readonly script: string;
  readonly style: string;
  readonly icon: string;
};

const types: Readonly<Record<string, string>> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
};

/**
 * Returns a function that loads the files of the console when it is first called, and then keeps them. In an installed package they
 * are in `dist/console`; in a checkout they are made from the sources.
 */
export function openConsoleFiles(): () => Promise<ConsoleFiles> {
  let loaded: Promise<ConsoleFiles> | undefined;
  return () => {
    loaded ??= load().catch((error: unknown) => {
      loaded = undefined; // the next request retries
      throw error;
    });
    return loaded;
  };
}

async function load(): Promise<ConsoleFiles> {
  const isCheckout = import.meta.filename.endsWith('.ts');
  const built = isCheckout ? await buildFromSources() : await readBuilt();
  const files = built.map(({ name, bytes, br, gz }): ConsoleFile => {
    const type = types[path.extname(name)] ?? 'application/octet-stream';
    return { name, type, plain: contentOf(bytes), br: contentOf(br), gzip: contentOf(gz) };
  });
  const named = (extension: string): string => {
    const file = files.find(({ name }) => name.endsWith(extension));
    if (file === undefined) throw new Error(`The console has no file ${extension}. Run npm run build.`);
    return file.name;
  };
  return {
    byName: new Map(files.map((file) => [file.name, file])),
    script: named('.js'),
    style: named('.css'),
    icon: named('.svg'),
  };
}

/** Bundles the sources. An installed package does not have the bundler, so it is imported only here. */
async function buildFromSources(): Promise<readonly BuiltFile[]> {
  const bundler = await import('./build.ts').catch(() => {
    throw new ApiError(
      503,
      'A service that runs from its sources needs the development dependencies to make the console: run npm install.',
    );
  });
  return bundler.buildConsole();
}

/** Reads what write_build.ts wrote. */
async function readBuilt(): Promise<readonly BuiltFile[]> {
  const folder = path.join(import.meta.dirname, '..', '..', 'console');
  const read = async (name: string) => new Uint8Array(await readFile(path.join(folder, name)));
  const names = (await readdir(folder)).filter((name) => path.extname(name) in types);
  return Promise.all(
    names.map(async (name) => ({
      name,
      bytes: await read(name),
      br: await read(`${name}.br`),
      gz: await read(`${name}.gz`),
    })),
  );
}

/** Bytes with the entity tag that they determine. */
export const contentOf = (bytes: Uint8Array<ArrayBuffer>): Content => ({
  bytes,
  etag: `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`,
});
