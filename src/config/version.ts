import { createRequire } from 'node:module';

/**
 * The version of this package, such as `0.1.0`. The package's name finds package.json from the sources and from dist/.
 */
export const { version }: { readonly version: string } = createRequire(import.meta.url)('placement/package.json');
