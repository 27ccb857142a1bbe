import { type Command, InvalidArgumentError } from 'commander';
import { retryConflicts } from '../client/index.ts';
import { findProvider } from './find_provider.ts';
import { shellOf } from './shell.ts';
import { table } from './table.ts';

export function addAggregateCommands(program: Command): void {
  const aggregate = program.command('aggregate').description('groups of providers, known by UUID');
  aggregate
    .command('list')
    .description('list the aggregates of a provider')
    .argument('<provider>', 'its name or UUID')
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const { uuid } = await findProvider(placement, which);
      const { aggregates } = await placement.aggregates.show(uuid);
      print(aggregates, () =>
        table(
          ['aggregate'],
          aggregates.map((one) => [one]),
        ),
      );
    });
  for (const { verb, description, decide } of changes) {
    aggregate
      .command(verb)
      .description(description)
      .argument('<provider>', 'its name or UUID')
      .argument(verb === 'set' ? '[UUID...]' : '<UUID...>', 'the aggregates', collectUuids)
      .action(async (which: string, uuids: readonly string[] | undefined, _options: object, command: Command) => {
        const { placement, print } = shellOf(command);
        const { uuid } = await findProvider(placement, which);
        const { aggregates } = await retryConflicts(async () => {
          const { aggregates: old, resource_provider_generation = 0 } = await placement.aggregates.show(uuid);
          return placement.aggregates.set(uuid, { aggregates: decide(old, uuids ?? []), resource_provider_generation });
        });
        print(aggregates, () =>
          table(
            ['aggregate'],
            aggregates.map((one) => [one]),
          ),
        );
      });
  }
}

function collectUuids(text: string, before: readonly string[] = []): readonly string[] {
  if (/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) return [...before, text];
  throw new InvalidArgumentError('An aggregate is a UUID; any will do, such as one that uuidgen prints.');
}

type Change = {
  readonly verb: 'set' | 'add' | 'remove';
  readonly description: string;
  readonly decide: (old: readonly string[], uuids: readonly string[]) => readonly string[];
};

const changes: readonly Change[] = [
  {
    verb: 'set',
    description: 'put a provider into these aggregates and no others',
    decide: (_old, uuids) => [...new Set(uuids)],
  },
  {
    verb: 'add',
    description: 'put a provider into more aggregates',
    decide: (old, uuids) => [...new Set([...old, ...uuids])],
  },
  {
    verb: 'remove',
    description: 'take a provider out of aggregates',
    decide: (old, uuids) => old.filter((one) => !uuids.includes(one)),
  },
];
