import type { Command } from 'commander';
import { addCustomNameCommands } from './custom_names.ts';
import { meaningOfClass } from './meanings.ts';
import { shellOf } from './shell.ts';

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
  addCustomNameCommands(resourceClass, {
    noun: 'classes',
    one: 'class',
    holder: 'inventory',
    calls: ({ resourceClasses }) => resourceClasses,
  });
}
