import type { Command } from 'commander';
import type { FollowedChange, ProviderPart } from '../client/index.ts';
import { shellOf } from './shell.ts';

type WatchOptions = { readonly parts?: string; readonly since?: string };

/** Adds `watch` to the commands. */
export function addWatchCommand(program: Command): void {
  program
    .command('watch')
    .description('print what changes, a line for each change, until it is interrupted; from 2.5')
    .option('--parts <list>', 'only these: provider, inventories, traits, aggregates, usages, with commas between them')
    .option('--since <token>', 'begin after this token, which --json prints with each change')
    .action(async ({ parts, since }: WatchOptions, command: Command) => {
      const { placement, print } = shellOf(command);
      const options = {
        since,
        parts: parts?.split(',') as readonly ProviderPart[] | undefined, // the server refuses others
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
  return `${change.resource_provider} ${'deleted' in change ? 'deleted' : change.parts.join(', ')}`;
}
