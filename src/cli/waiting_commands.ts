import type { Command } from 'commander';
import { isNotFound, type Placement, type WaitingFilter } from '../client/index.ts';
import { withName } from '../placement/uuid.ts';
import { consumerArgument, listedOrNone, type NamedConsumer, onlyOne, readConsumer } from './consumer_argument.ts';
import { CommandFailure } from './exit_codes.ts';
import { shellOf } from './shell.ts';

type WaitingListOptions = { readonly project?: string; readonly line?: string };

/** Adds the commands of `placement waiting`. */
export function addWaitingCommands(program: Command): void {
  const waiting = program.command('waiting').description('claims that wait for their place; from 2.8');
  waiting
    .command('list')
    .description('list the claims that wait, and what for; with several options those for which all hold')
    .option('--project <id>', 'of this project')
    .option('--line <name>', 'in a line of this name')
    .action(async ({ project, line }: WaitingListOptions, command: Command) => {
      const { placement, print } = shellOf(command);
      const filter: WaitingFilter = { project_id: project, line };
      const claims = await Array.fromAsync(placement.waiting.list(filter));
      print(claims, () => ({
        head: ['consumers', 'project', 'user', 'line', 'place', 'since', 'until', 'waits for', 'condition'],
        rows: claims.map((claim) => [
          claim.consumers.map((uuid, index) => withName(uuid, claim.names?.[index])).join(' '),
          claim.project_id,
          claim.user_id,
          claim.line ?? undefined,
          claim.place,
          claim.since,
          claim.until,
          claim.waits_for,
          claim.condition,
        ]),
      }));
    });
  waiting
    .command('delete')
    .description('end the wait of the claim of a consumer; its client is told that it fits nowhere')
    .argument(...consumerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      const { uuid: consumer, name } = await waitingOne(placement, readConsumer(which, undefined, command));
      const shown = withName(consumer, name === undefined ? undefined : which);
      try {
        await placement.waiting.remove(consumer);
      } catch (error) {
        if (isNotFound(error))
          throw new CommandFailure('wrongInput', `No claim of consumer ${shown} waits.`, { cause: error });
        throw error;
      }
      print({ consumer }, () => `The claim of consumer ${shown} waits no more.`);
    });
}

/** The consumer with a name among waiting claims, whose consumers are not in the list of consumers yet. */
async function waitingOne(placement: Placement, named: NamedConsumer): Promise<NamedConsumer> {
  if (named.name === undefined) return named;
  const { others = [], ...first } = named;
  for (const reading of [first, ...others]) {
    const claims = await listedOrNone(Array.fromAsync(placement.waiting.list({ project_id: reading.project })));
    const uuids = claims.flatMap(({ consumers, names = [] }) =>
      consumers.filter((uuid, index) => names[index] === reading.name || uuid === reading.uuid),
    );
    if (uuids.length > 0) return onlyOne(reading, uuids);
  }
  return first;
}
