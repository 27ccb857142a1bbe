import type { Command } from 'commander';
import { sumOfResources } from '../client/filters.ts';
import type { Consumer, Holding } from '../client/index.ts';
import { resourcesText } from './amounts.ts';
import {
  consumerArgument,
  expiresInOption,
  foundConsumer,
  readConsumer,
  showConsumer,
  typeOption,
} from './consumer_argument.ts';
import { type ConsumerFilterOptions, consumerFilter, holdingsByConsumer } from './consumer_filter.ts';
import { readDuration } from './duration.ts';
import { type IfMatchOption, ifMatchOption, retryUnlessChanged } from './if_match.ts';
import { shellOf } from './shell.ts';
import { fields, type TextTable } from './table.ts';

type ConsumerListOptions = ConsumerFilterOptions & {
  readonly expiring?: number | true;
  readonly name?: string;
  readonly nameContains?: string;
};

type TermOptions = IfMatchOption & { readonly expiresIn?: number; readonly lasting?: true };

/** A time after the end of every term. */
const farAway = '9999-12-31T23:59:59Z';

type ConsumerSetOptions = IfMatchOption & {
  readonly project?: string;
  readonly user?: string;
  readonly type?: string;
  readonly name?: string;
};

/** Adds the commands of `placement consumer`. */
export function addConsumerCommands(program: Command): void {
  const consumer = program
    .command('consumer')
    .description('consumers of resources, with their project, user and type; from 2.2');
  consumer
    .command('list')
    .description('list consumers, with what they have where; with several options those for which all hold')
    .option('--project <id>', 'of this project')
    .option('--user <id>', 'of this user')
    .addOption(typeOption('of this type; unknown for those without one', 'unknown'))
    .option('--name <name>', 'with this name; from 2.9')
    .option('--name-contains <text>', 'with this text in the name, A to Z as a to z; from 2.9')
    .option('--provider <provider>', 'with allocations on this provider, which are shown')
    .option('--in-tree <provider>', 'with allocations in the tree of this provider, which are shown')
    .option(
      '--expiring [time]',
      'with a term, or with a term that expires within this time, such as 30m; from 2.6',
      readDuration,
    )
    .action(async ({ name, nameContains, expiring, ...options }: ConsumerListOptions, command: Command) => {
      const { placement, print } = shellOf(command);
      const filter = { ...(await consumerFilter(placement, options)), name_contains: nameContains };
      const query = {
        ...filter,
        name,
        expiring_before: typeof expiring === 'number' ? new Date(Date.now() + expiring * 1000) : expiring && farAway,
      };
      const consumers = await Array.fromAsync(placement.consumers.list(query));
      const held =
        consumers.length === 0 ? new Map<string, readonly Holding[]>() : await holdingsByConsumer(placement, filter);
      print(consumers, () => ({
        head: listColumns,
        rows: consumers.map((one) => {
          const holdings = held.get(one.uuid) ?? [];
          return [
            one.uuid,
            one.name ?? undefined,
            one.project_id,
            one.user_id,
            one.consumer_type,
            one.consumer_generation ?? undefined,
            [...new Set(holdings.map(({ root }) => root.name))].join(', '),
            resourcesText(sumOfResources(holdings.map(({ resources }) => resources))),
            one.created_at ?? undefined,
            one.expires_at ?? undefined,
          ];
        }),
        undrawn: ['generation'],
      }));
    });
  consumer
    .command('show')
    .description('show the name, project, user and type of a consumer')
    .argument(...consumerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const found = await showConsumer(
        placement,
        await foundConsumer(placement, readConsumer(which, undefined, command)),
      );
      print(found, () => consumerText(found));
    });
  consumer
    .command('set')
    .description('change the project, user, type or name of a consumer; its allocations stay')
    .argument(...consumerArgument)
    .option('--project <id>', 'the project that it is counted for from now on')
    .option('--user <id>', 'the user that it is counted for from now on')
    .addOption(typeOption('the kind of consumer'))
    .option('--name <name>', 'its name from now on, "" for none; from 2.9')
    .addOption(ifMatchOption('consumer show'))
    .action(async (which: string, options: ConsumerSetOptions, command: Command) => {
      const { placement, print } = shellOf(command, [consumerFields]);
      const read = readConsumer(which, undefined, command);
      const { project, user, type, name, ifMatch } = options;
      if (project === undefined && user === undefined && type === undefined && name === undefined) {
        command.error('error: Nothing is to be changed. Give --project, --user, --type or --name.');
      }
      const named = await foundConsumer(placement, read);
      const { uuid } = named;
      const changed = await retryUnlessChanged(options, async () => {
        const found = await showConsumer(placement, named);
        const owner = {
          project_id: project ?? found.project_id,
          user_id: user ?? found.user_id,
          consumer_type: type ?? found.consumer_type,
          consumer_generation: found.consumer_generation,
          name: name === '' ? null : name,
        };
        return placement.consumers.set(uuid, owner, { ifMatch });
      });
      print(changed, () => consumerText(changed));
    });
  consumer
    .command('term')
    .description('renew the term of a consumer, give it one, or make it lasting; from 2.6')
    .argument(...consumerArgument)
    .addOption(expiresInOption().conflicts('lasting'))
    .option('--lasting', 'the consumer has no term any more')
    .addOption(ifMatchOption('consumer show'))
    .action(async (which: string, options: TermOptions, command: Command) => {
      const { expiresIn, lasting, ifMatch } = options;
      const read = readConsumer(which, undefined, command);
      const { placement, print } = shellOf(command, []);
      if (expiresIn === undefined && lasting === undefined) {
        command.error('error: Nothing is to be changed. Give --expires-in or --lasting.');
      }
      const named = await foundConsumer(placement, read);
      const { uuid } = named;
      const term = await retryUnlessChanged(options, async () => {
        const { consumer_generation } = await showConsumer(placement, named);
        return placement.consumers.setTerm(uuid, { expires_in: expiresIn ?? null, consumer_generation }, { ifMatch });
      });
      print({ uuid, ...term }, () =>
        term.expires_at === null ? `Consumer ${uuid} is lasting.` : `Consumer ${uuid} lasts until ${term.expires_at}.`,
      );
    });
}

/** The fields of `consumerText`. */
const consumerFields = [
  ...['consumer', 'name', 'project', 'user', 'type', 'generation'],
  ...['created', 'updated', 'expires'],
];

const listColumns = [
  ...['consumer', 'name', 'project', 'user', 'type', 'generation'],
  ...['hosts', 'resources', 'since', 'expires'],
];

const consumerText = (consumer: Consumer): TextTable =>
  fields([
    ['consumer', consumer.uuid],
    ['name', consumer.name ?? undefined],
    ['project', consumer.project_id],
    ['user', consumer.user_id],
    ['type', consumer.consumer_type],
    ['generation', consumer.consumer_generation ?? undefined],
    ['created', consumer.created_at ?? undefined],
    ['updated', consumer.updated_at ?? undefined],
    ['expires', consumer.expires_at ?? undefined],
  ]);
