import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import path from 'node:path';
import { exitCodes } from '../../src/cli/exit_codes.ts';
import { widthOf } from '../../src/cli/table.ts';
import type { Ended } from '../support/command_host.ts';
import { runHosted } from '../support/hosted_command.ts';
import { quickStart } from '../support/quick_start.ts';
import { project } from './documentation.ts';
import type { TestServer } from './servers.ts';

export const program = path.join(project, 'src', 'bin', 'placement.ts');

/** Runs `placement` to its end in a separate process, with only this environment. */
export function placement(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> {
  return new Promise((resolve) => {
    const options = { env: { PATH: process.env.PATH, ...quickStart, ...env }, timeout: 60_000, maxBuffer: 2 ** 27 };
    execFile(process.execPath, [program, ...args], options, (error, stdout, stderr) => {
      resolve({ code: typeof error?.code === 'number' ? error.code : error === null ? 0 : -1, stdout, stderr });
    });
  });
}

/** Starts `placement` in a process of its own, with only the given environment. */
export const startPlacement = (args: readonly string[], env: Readonly<Record<string, string>>) =>
  spawn(process.execPath, [program, ...args], { env: { PATH: process.env.PATH, ...quickStart, ...env } });

/** As `placement`, in the process that runs the command lines of a test file. */
export const hostedPlacement = (args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ended> =>
  runHosted({ program: 'placement', args, cwd: '/', env: { PATH: process.env.PATH ?? '', ...env } });

/** Runs a command line that must fail with this text and exit code, without a stack. */
export async function mustFail(
  expected: RegExp,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  ending: keyof typeof exitCodes,
): Promise<void> {
  const { stdout, stderr, ...ended } = await hostedPlacement(args, env);
  assert.deepEqual([ended.code, stdout], [exitCodes[ending].code, ''], stderr);
  assert.match(stderr, expected);
  assert.doesNotMatch(stderr, /^ +at /m);
}

/**
 * Command lines of an administrator, for a server.
 *
 * @param server called for each command line: a test may have a separate server
 */
export function commandsOn(server: () => TestServer) {
  const env = (more: Readonly<Record<string, string>> = {}) => ({
    OS_ENDPOINT: server().url,
    OS_TOKEN: 'admin',
    ...more,
  });
  return {
    env,
    /** Runs a command line that must succeed without a warning. @returns what it prints */
    run: async (...args: readonly string[]): Promise<string> => {
      const { code, stdout, stderr } = await hostedPlacement(args, env());
      assert.deepEqual([code, stderr], [0, ''], args.join(' '));
      return stdout;
    },
    /** Runs a command line that must fail with this text. */
    fails: (ending: keyof typeof exitCodes, expected: RegExp, args: readonly string[], more = {}) =>
      mustFail(expected, args, env(more), ending),
    /** Runs a command line that must be refused as wrong usage, with this text. */
    isWrongUsage: (expected: RegExp, args: readonly string[], more = {}) =>
      mustFail(expected, args, env(more), 'wrongUsage'),
  };
}

/** The cells of a table, and of those that follow it, without the first head. Checks that the text has only tables. */
export function cells(text: string): readonly (readonly string[])[] {
  const lines = text.trimEnd().split('\n');
  // The last line of a table and the first one of the next both begin with a plus.
  for (const table of text.trimEnd().split(/(?<=\+)\n(?=\+)/)) {
    assert.equal(new Set(table.split('\n').map(widthOf)).size, 1, `the table is crooked:\n${text}`);
  }
  return lines
    .filter((line) => line.startsWith('|'))
    .slice(1)
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
}
