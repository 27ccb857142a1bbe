import type { Command } from 'commander';
import type { Placement } from '../client/index.ts';
import { messageOf } from '../message_of.ts';
import { type ConnectionFlags, openPlacement } from './connection.ts';

/** What every command works with. */
export type Shell = {
  readonly placement: Placement;
  /** Prints a result: the value with `--json`, otherwise the text. */
  print(value: unknown, text: () => string): void;
};

/** The client and the way to print, by the options that are before or behind the command. */
export function shellOf(command: Command): Shell {
  const flags = command.optsWithGlobals<ConnectionFlags & { readonly json?: true }>();
  return {
    placement: connected(command, flags),
    print: (value, text) => console.log(flags.json ? JSON.stringify(value, null, 2) : text()),
  };
}

/** What does not suffice to reach the service is wrong usage. */
function connected(command: Command, flags: ConnectionFlags): Placement {
  try {
    return openPlacement(flags, process.env);
  } catch (error) {
    return command.error(`error: ${messageOf(error)}`);
  }
}

/** Calls for each name, one after the other, and prints those for which that was done, even where the next one fails. */
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

/** For long lists: maps with so many calls at a time. */
const atOnce = 8;

/** Calls for each item, some at a time, and keeps the order. */
export async function forEach<Item, Result>(
  items: readonly Item[],
  call: (item: Item) => Promise<Result>,
): Promise<readonly Result[]> {
  const results: Result[] = new Array(items.length);
  let next = 0;
  const work = async (): Promise<void> => {
    for (;;) {
      const place = next++;
      const item = items[place];
      if (item === undefined) return;
      results[place] = await call(item);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}
