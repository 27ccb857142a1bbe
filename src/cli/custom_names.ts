import type { Command } from 'commander';
import type { Placement } from '../client/index.ts';
import { CommandFailure } from './exit_codes.ts';
import { shellOf } from './shell.ts';

/** Traits or resource classes: what they are called, what may have them, and the calls for one name. */
type Kind = {
  readonly noun: string;
  readonly one: string;
  readonly holder: string;
  readonly calls: (placement: Placement) => {
    ensure(name: string): Promise<unknown>;
    delete(name: string): Promise<unknown>;
  };
};

/** Adds `create` and `delete` for custom names to `placement trait` or `placement class`. */
export function addCustomNameCommands(group: Command, { noun, one, holder, calls }: Kind): void {
  group
    .command('create')
    .description(`make sure that custom ${noun} exist`)
    .argument('<CUSTOM_NAME...>', 'their names, which begin with CUSTOM_')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      checkCustomNames(names, one);
      await oneAfterTheOther(names, calls(placement).ensure, (made) =>
        print(made, () => `There is ${made.join(', ')} now.`),
      );
    });
  group
    .command('delete')
    .description(`delete custom ${noun} that no ${holder} has`)
    .argument('<CUSTOM_NAME...>', 'their names')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      await oneAfterTheOther(names, calls(placement).delete, (gone) =>
        print(gone, () => `${gone.join(', ')} deleted.`),
      );
    });
}

/** Checks names here, because the server would answer with a regular expression. @param kind such as `class` */
export function checkCustomNames(names: readonly string[], kind: string): void {
  const wrong = names.find((name) => !/^CUSTOM_[A-Z0-9_]{1,248}$/.test(name));
  if (wrong === undefined) return;
  const meant = wrong.toUpperCase().replaceAll(/[^A-Z0-9_]+/g, '_');
  const suggestion =
    /[A-Z0-9]/.test(meant) && meant.length < 240 ? `, such as CUSTOM_${meant.replace(/^CUSTOM_/, '')}` : '';
  throw new CommandFailure(
    'wrongInput',
    `"${wrong}" is no name for a ${kind} of your own: that begins with CUSTOM_ and has capital letters, digits and _${suggestion}.`,
  );
}

/** Runs a call for each name, one after the other. Prints the names that succeeded, even if a later one fails. */
async function oneAfterTheOther(
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
