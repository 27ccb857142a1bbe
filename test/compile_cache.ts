import path from 'node:path';

/**
 * For the environment of each process that tests start: none compiles again what another one has, which is more than half of
 * what a short command takes.
 */
export const compileCache: Readonly<Record<'NODE_COMPILE_CACHE', string>> = {
  NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? path.join(import.meta.dirname, '..', 'node_modules', '.cache'),
};
