import { type Command, InvalidArgumentError } from 'commander';
import { retryConflicts } from '../client/index.ts';
import { normalUuid } from '../placement/uuid.ts';
import { listOperations } from './differences.ts';
import { findProvider, providerArgument } from './find_provider.ts';
import { shellOf } from './shell.ts';
import { column } from './table.ts';

/** Adds the commands of `placement aggregate`. */
export function addAggregateCommands(program: Command): void {
  const aggregate = program.command('aggregate').description('groups of providers, known by UUID');
  aggregate
    .command('list')
    .description('list the aggregates of a provider')
    .argument(...providerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const { uuid } = await findProvider(placement, which);
      const { aggregates } = await placement.aggregates.show(uuid);
      print(aggregates, () => column('aggregate', aggregates));
    });
  for (const { verb, description } of changes) {
    aggregate
      .command(verb)
      .description(description)
      .argument(...providerArgument)
      .argument(verb === 'set' ? '[UUID...]' : '<UUID...>', 'the aggregates', collectUuids)
      .action(async (which: string, uuids: readonly string[] | undefined, _options: object, command: Command) => {
        const { placement, print } = shellOf(command, [['aggregate']]);
        const { uuid } = await findProvider(placement, which);
        const { aggregates } = await retryConflicts(async () => {
          const { aggregates: old, resource_provider_generation = 0 } = await placement.aggregates.show(uuid);
          return placement.aggregates.set(uuid, {
            aggregates: listOperations[verb](old, uuids ?? [], normalUuid),
            resource_provider_generation,
          });
        });
        print(aggregates, () => column('aggregate', aggregates));
      });
  }
}

function collectUuids(text: string, before: readonly string[] = []): readonly string[] {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return [...before, text];
  throw new InvalidArgumentError('An aggregate is a UUID. Any UUID is allowed, such as one that uuidgen prints.');
}

const changes = [
  { verb: 'set', description: 'put a provider into these aggregates and no others' },
  { verb: 'add', description: 'put a provider into more aggregates' },
  { verb: 'remove', description: 'take a provider out of aggregates' },
] as const;
