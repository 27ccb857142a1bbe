import type { Command } from 'commander';
import { meaningOfClass } from './meanings.ts';
import { oneAfterTheOther, shellOf } from './shell.ts';

/** Adds the commands of `placement class`. */
export function addClassCommands(program: Command): void {
  const resourceClass = program.command('class').description('resource classes: the kinds of things that are counted');
  resourceClass
    .command('list')
    .description('list the resource classes')
    .option('--custom', 'only custom ones')
    .action(async ({ custom }: { readonly custom?: true }, command: Command) => {
      const { placement, print } = shellOf(command);
      const all = await placement.resourceClasses.list();
      const names = custom ? all.filter((name) => name.startsWith('CUSTOM_')) : all;
      print(names, () => ({ head: ['class', 'counts'], rows: names.map((name) => [name, meaningOfClass(name)]) }));
    });
  resourceClass
    .command('create')
    .description('make sure that custom classes exist')
    .argument('<CUSTOM_NAME...>', 'their names, which begin with CUSTOM_')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      await oneAfterTheOther(names, placement.resourceClasses.ensure, (made) =>
        print(made, () => `There is ${made.join(', ')} now.`),
      );
    });
  resourceClass
    .command('delete')
    .description('delete custom classes that no inventory has')
    .argument('<CUSTOM_NAME...>', 'their names')
    .action(async (names: readonly string[], _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      await oneAfterTheOther(names, placement.resourceClasses.delete, (gone) =>
        print(gone, () => `${gone.join(', ')} deleted.`),
      );
    });
}
