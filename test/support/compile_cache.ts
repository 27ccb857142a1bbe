import path from 'node:path';

/**
 * For the environment of each process that tests start. A process uses the code that another one has compiled.
 * Compiling takes more than half of the time of a short command.
 */
export const compileCache: Readonly<Record<'NODE_COMPILE_CACHE', string>> = {
  NODE_COMPILE_CACHE:
    process.env.NODE_COMPILE_CACHE ?? path.join(import.meta.dirname, '..', '..', 'node_modules', '.cache'),
};
