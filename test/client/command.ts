import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { compileCache } from '../compile_cache.ts';
import { project } from './documentation.ts';

export type Ended = { readonly code: number; readonly stdout: string; readonly stderr: string };

export const program = path.join(project, 'src', 'bin', 'placement.ts');

/** Runs `placement` to its end, with only the given environment. */
export function placement(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env.PATH, ...compileCache, ...env }, timeout: 60_000, maxBuffer: 2 ** 27 };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, stdout, stderr });
    });
  });
}

/** Runs a command line that must fail with this text, without a stack. @param code 2 for wrong usage */
export async function mustFail(
  expected: RegExp,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  code = 1,
): Promise<void> {
  const { stdout, stderr, ...ended } = await placement(args, env);
  assert.deepEqual([ended.code, stdout], [code, ''], stderr);
  assert.match(stderr, expected);
  assert.doesNotMatch(stderr, /^ +at /m);
}
