import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import { build } from 'esbuild';

/** A file of the console. Its name has a digest of its content, so it never changes. */
export type BuiltFile = {
  readonly name: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** The same, compressed. */
  readonly br: Uint8Array<ArrayBuffer>;
  readonly gz: Uint8Array<ArrayBuffer>;
};

/** The sources of the pages. */
const sources = path.join(import.meta.dirname, '..', '..', 'console');

const licence = path.join(import.meta.dirname, '..', '..', 'node_modules', 'preact', 'LICENSE');

/** Bundles the pages: one script, one style sheet and the icon. */
export async function buildConsole(): Promise<readonly BuiltFile[]> {
  const { outputFiles } = await build({
    absWorkingDir: sources,
    entryPoints: ['main.tsx', 'icon.svg'],
    entryNames: '[name]-[hash]',
    outdir: '.',
    write: false,
    bundle: true,
    minify: true,
    format: 'esm',
    target: 'es2024',
    jsx: 'automatic',
    jsxImportSource: 'preact',
    loader: { '.svg': 'copy' },
    logLevel: 'silent',
    // Preact is part of the script, and its licence must be distributed with it.
    banner: { js: `/*! Preact\n${await readFile(licence, 'utf8')}*/` },
  });
  return Promise.all(
    outputFiles.map(async ({ path: file, contents }) => {
      const bytes = new Uint8Array(contents);
      const brotli = { params: { [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } };
      return {
        name: path.basename(file),
        bytes,
        br: new Uint8Array(await promisify(brotliCompress)(bytes, brotli)),
        gz: new Uint8Array(await promisify(gzip)(bytes, { level: 9 })),
      };
    }),
  );
}
