import type { Command } from 'commander';
import type { Placement } from '../client/index.ts';
import { escapeControlsInJson, messageOf, print } from '../text/print.ts';
import { type ConnectionFlags, openPlacement } from './connection.ts';

/** The client and the output of a command. */
export type Shell = {
  readonly placement: Placement;
  /**
   * Prints a result: the value with `--json`, otherwise the text. `json` is for values that JSON.stringify cannot
   * write.
   */
  print(value: unknown, text: () => string, json?: () => string): void;
};

/** Makes client and output from the options, which may come before or after the command. */
export function shellOf(command: Command): Shell {
  const flags = command.optsWithGlobals<ConnectionFlags & { readonly json?: true }>();
  return {
    placement: connected(command, flags),
    print: (value, text, json = () => JSON.stringify(value, null, 2)) =>
      print(flags.json ? escapeControlsInJson(json()) : text()),
  };
}

/** If the options are not enough to reach the service, that is wrong usage. */
function connected(command: Command, flags: ConnectionFlags): Placement {
  try {
    return openPlacement(flags, process.env);
  } catch (error) {
    return command.error(`error: ${messageOf(error)}`);
  }
}

/** Runs a call for each name, one after the other. Prints the names that succeeded, even if a later one fails. */
export async function oneAfterTheOther(
  names: readonly string[],
  call: (name: string) => Promise<unknown>,
  printDone: (done: readonly string[]) => void,
): Promise<void> {
  const done: string[] = [];
  try {
    for (const name of names) {
      await call(name);
      done.push(name);
    }
  } finally {
    if (done.length > 0) printDone(done);
  }
}
