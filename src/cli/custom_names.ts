import type { Command } from 'commander';
import type { Placement } from '../client/index.ts';
import { shellOf } from './shell.ts';

/** Traits or resource classes: what they are called, what may have them, and the calls for one name. */
type Kind = {
  readonly noun: string;
  readonly holder: string;
  readonly calls: (placement: Placement) => {
    ensure(name: string): Promise<unknown>;
    delete(name: string): Promise<unknown>;
  };
};

/** Adds `create` and `delete` for custom names to `placement trait` or `placement class`. */
export function addCustomNameCommands(group: Command, { noun, holder, calls }: Kind): void {
  group
    .command('create')
    .description(`make sure that custom ${noun} exist`)
    .argument('<CUSTOM_NAME...>', 'their names, which begin with CUSTOM_')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
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
