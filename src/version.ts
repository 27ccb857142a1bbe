import { createRequire } from 'node:module';

/** The version of this package, such as `0.1.0`; its own name finds package.json from the sources and from dist/ alike. */
export const { version }: { readonly version: string } = createRequire(import.meta.url)('placement/package.json');
