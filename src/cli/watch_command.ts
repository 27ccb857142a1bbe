import type { Command } from 'commander';
import type { FollowedChange, FollowOptions } from '../client/index.ts';
import { findProvider } from './find_provider.ts';
import { shellOf } from './shell.ts';

type WatchOptions = {
  readonly parts?: string;
  readonly class?: string;
  readonly inTree?: string;
  readonly since?: string;
};

/** Adds `watch` to the commands. */
export function addWatchCommand(program: Command): void {
  program
    .command('watch')
    .description('print what changes, a line for each change, until it is interrupted; from 2.5')
    .option(
      '--parts <list>',
      'only these: provider, inventories, traits, aggregates, usages, consumers (from 2.9, with the history on), with commas between them',
    )
    .option('--class <class>', 'only providers with an inventory of this resource class; from 2.7')
    .option('--in-tree <provider>', 'only the tree that this provider is in, by its name or UUID; from 2.7')
    .option('--since <token>', 'begin after this token, which --json prints with each change')
    .action(async ({ parts, class: className, inTree, since }: WatchOptions, command: Command) => {
      const { placement, print } = shellOf(command);
      const options = {
        since,
        resource_class: className,
        in_tree: inTree === undefined ? undefined : (await findProvider(placement, inTree)).uuid,
        parts: parts?.split(',') as FollowOptions['parts'], // the server refuses others
      };
      for await (const change of placement.changes(options)) {
        print(
          change,
          () => lineOf(change),
          () => JSON.stringify(change),
        );
      }
    });
}

function lineOf(change: FollowedChange): string {
  if ('everything' in change) return 'everything may have changed: read it';
  if ('traits' in change) return 'traits';
  if ('resource_classes' in change) return 'resource classes';
  if ('consumer' in change)
    return `consumer ${change.consumer} ${'gone' in change ? `gone: ${change.ended}` : 'changed'}`;
  return `${change.resource_provider} ${'deleted' in change ? 'deleted' : change.parts.join(', ')}`;
}
