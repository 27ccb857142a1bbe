import type { Command } from 'commander';
import { instead } from '../client/errors.ts';
import { forEach } from '../client/for_each.ts';
import { type ConsumerQuery, isNotFound, type Placement } from '../client/index.ts';
import { isUuidLike } from '../placement/uuid.ts';
import { messageOf } from '../text/print.ts';
import { counted } from '../text/strings.ts';
import { foundConsumer, readConsumer, typeOption } from './consumer_argument.ts';
import { CommandFailure } from './exit_codes.ts';
import { type IfMatchOption, ifMatchOption } from './if_match.ts';
import { type Shell, shellOf } from './shell.ts';
import { shellWord } from './shell_word.ts';

type DeletionOptions = IfMatchOption & {
  readonly project?: string;
  readonly user?: string;
  readonly type?: string;
  readonly dryRun?: true;
};

/** Adds `allocation delete`, which is for one consumer or for all consumers of a project. */
export function addDeleteCommand(allocation: Command): void {
  allocation
    .command('delete')
    .description('delete the allocations of a consumer, or with --project those of all consumers of the project')
    .argument('[consumer]', 'its UUID, or its name as PROJECT/NAME')
    .option('--project <id>', 'all consumers of this project, instead of one consumer; from 2.2')
    .option('--user <id>', 'with --project: only consumers of this user')
    .addOption(
      typeOption('with --project: only consumers of this type; unknown for consumers without a type', 'unknown'),
    )
    .option('--dry-run', 'with --project: list the consumers, and delete nothing')
    .addOption(ifMatchOption('allocation show'))
    .addHelpText('after', '\nExample: placement allocation delete --project ci --type CI_JOB --dry-run')
    .action(async (which: string | undefined, options: DeletionOptions, command: Command) => {
      const { project, user, type, dryRun, ifMatch } = options;
      if (project === undefined) {
        if (which === undefined) return command.error('error: Give a consumer, or --project for all of a project.');
        if ((user ?? type ?? dryRun) !== undefined)
          return command.error('error: --user, --type and --dry-run need --project.');
        const named = readConsumer(which, undefined, command);
        const shell = shellOf(command, []);
        return deleteOne(shell, (await foundConsumer(shell.placement, named)).uuid, options);
      }
      // An empty shell variable instead of the consumer must not delete the allocations of the whole project.
      if (which !== undefined) {
        return command.error(
          `error: Give a consumer or --project, not both. For one consumer leave out --project, and write ${shellWord(aloneOf(which, project))}.`,
        );
      }
      if (ifMatch !== undefined) return command.error('error: --if-match is for one consumer, not for --project.');
      const query = { project_id: project, user_id: user, consumer_type: type };
      await deleteAll(shellOf(command, dryRun ? [dryRunColumns] : []), query, dryRun === true);
    });
}

const dryRunColumns = ['consumer', 'name'];

/** How a consumer is written without `--project`. */
const aloneOf = (which: string, project: string): string =>
  isUuidLike(which) || which.startsWith(`${project}/`) ? which : `${project}/${which || 'NAME'}`;

async function deleteOne({ placement, print }: Shell, consumer: string, { ifMatch }: IfMatchOption): Promise<void> {
  try {
    await placement.allocations.delete(consumer, { ifMatch });
  } catch (error) {
    if (isNotFound(error)) throw new CommandFailure('wrongInput', `Consumer ${consumer} has no allocations.`);
    throw error;
  }
  print({ consumer }, () => `Consumer ${consumer} has no allocations any more.`);
}

/** Deletes the allocations of several consumers at a time. After a failure the other consumers are still processed. */
async function deleteAll({ placement, print }: Shell, query: ConsumerQuery, dryRun: boolean): Promise<void> {
  const found = await Array.fromAsync(placement.consumers.list(query));
  const consumers = found.map(({ uuid }) => uuid);
  if (dryRun) {
    const sentence = `${counted(consumers.length, 'consumer')} would release all allocations. Nothing was deleted.`;
    const rows = found.map(({ uuid, name }) => [uuid, name ?? undefined]);
    print({ consumers }, () => [...(rows.length === 0 ? [] : [{ head: dryRunColumns, rows }]), sentence]);
    return;
  }
  const failures: unknown[] = [];
  const results = await forEach(consumers, async (consumer) => {
    try {
      return (await isDeleted(placement, consumer)) ? [consumer] : [];
    } catch (error) {
      failures.push(error);
      return [];
    }
  });
  const deleted = results.flat();
  print({ consumers: deleted }, () => `${counted(deleted.length, 'consumer')} released all allocations.`);
  if (failures.length === 0) return;
  throw new Error(
    `${counted(failures.length, 'consumer')} could not release all allocations: ${messageOf(failures[0])}`,
    {
      cause: failures[0],
    },
  );
}

/** False if the consumer has no allocations any more. */
const isDeleted = (placement: Placement, consumer: string): Promise<boolean> =>
  placement.allocations.delete(consumer).then(() => true, instead(false, isNotFound));
