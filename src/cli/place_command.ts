import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { forEach } from '../client/for_each.ts';
import { isConcurrentUpdate, type Placed, type Placement, type Placing } from '../client/index.ts';
import { withName } from '../placement/uuid.ts';
import { printError } from '../text/print.ts';
import { resourcesText, wholeNumber } from './amounts.ts';
import { queryHelp, takeQuery, takeTreeOptions } from './candidate_query.ts';
import { expiresInOption, foundConsumer, type NamedConsumer, readOwned, typeOption } from './consumer_argument.ts';
import { CommandFailure, exitCodes } from './exit_codes.ts';
import { namesOfHeld } from './find_provider.ts';
import { type Held, hasSomething, type OwnerOptions, ownerOf, readHeld } from './held.ts';
import { shellOf } from './shell.ts';
import type { Printed } from './table.ts';
import { asUnplaceable } from './unplaceable.ts';
import { asTooLong, claimWithReports, waitOption } from './wait.ts';

type PlaceOptions = OwnerOptions & {
  readonly consumer?: string;
  readonly count?: number;
  readonly apart?: true;
  readonly move?: true;
  readonly dryRun?: true;
  readonly wait?: number;
  readonly line?: string;
};

/** Placings by the UUIDs of their consumers, in the order in which they are placed. */
type Gang = ReadonlyMap<string, Placing>;

/** What consumers have now, by their UUIDs. */
type PlacedGang = ReadonlyMap<string, Placed>;

/** Adds `allocation place`, which finds a place and claims it in one request; from 2.4. */
export function addPlaceCommand(allocation: Command): void {
  const place = allocation
    .command('place')
    .description('find a place for a consumer, or for several together, and claim it, in one step; from 2.4');
  const readQuery = takeQuery(place);
  takeTreeOptions(place)
    .option('--consumer <consumer>', 'its UUID, or its name in the project; a new one with a random UUID by default')
    .option(
      '--count <number>',
      'so many consumers, all or none: NAME-1, NAME-2 and so on',
      wholeNumber(1, mostConsumers),
    )
    .option('--apart', 'with --count: each on another host')
    .option('--move', 'the consumer has something, and gets this place instead; what is not given stays, also its term')
    .option('--project <id>', 'the project that it is counted for; needed for a new consumer')
    .option('--user <id>', 'the user that it is counted for; the default for a new consumer is the project')
    .addOption(typeOption('the kind of consumer; the default for a new consumer is INSTANCE'))
    .addOption(expiresInOption())
    .option('--dry-run', 'check it and show what it would get, and write nothing')
    .addOption(waitOption().conflicts('dryRun'))
    .option('--line <name>', 'with --wait: in this line of the project, whose claims are placed one after the other')
    .addHelpText(
      'after',
      queryHelp('placement allocation place VCPU=2 MEMORY_MB=2048 --order free:VCPU --project web --dry-run'),
    )
    .addHelpText('after', 'Example: placement allocation place PGPU=8 --consumer train --count 4 --apart --project ci')
    .addHelpText('after', 'With --wait, Ctrl-C gives the claim up; the exit code is then 130.')
    .action(async (_amounts: unknown, options: PlaceOptions, command: Command) => {
      checkTogether(options, command);
      const { placement, print } = shellOf(command, [placedColumns]);
      const query = await readQuery(command, { placement });
      const read = namedBy(options, command);
      const named = options.move ? await forEach(read, (one) => foundConsumer(placement, one)) : read;
      const held = options.move ? await forEach(named, ({ uuid }) => readMoved(placement, uuid)) : [];
      const gang = new Map<string, Placing>();
      for (const [index, one] of named.entries()) {
        const apart_from = options.apart ? [...(query.apart_from ?? []), ...gang.keys()] : query.apart_from;
        gang.set(one.uuid, { candidates: { ...query, apart_from }, ...ownerOf(held[index], one, options, command) });
      }
      const placed = await claim(placement, gang, options).catch(async (error: unknown) => {
        throw (
          asTooLong(error) ??
          (await asUnplaceable(placement, query, options, error)) ??
          (await asTaken(placement, named, options, error)) ??
          error
        );
      });
      if (placed === undefined) {
        printError(
          'The claim does not wait any more. If it was placed just before that, ' +
            `"placement allocation show ${named[0]?.uuid}" shows it.`,
        );
        process.exitCode = exitCodes.interrupted.code;
        return;
      }
      const nameOf = await namesOfHeld(placement, [...placed.values()]);
      const shown = Array.from(placed, ([consumer, has]) => ({ consumer, ...has }));
      print(options.count === undefined ? shown[0] : shown, () => placedText(placed, nameOf, options));
    });
}

/** With --apart each consumer names all consumers before it, so that the request grows quadratically. */
const mostConsumers = 500;

function checkTogether({ line, wait, move, consumer, apart, count }: PlaceOptions, command: Command): void {
  if (line !== undefined && wait === undefined) command.error('error: --line needs --wait.');
  if (move && consumer === undefined) command.error('error: --move needs --consumer.');
  if (apart && count === undefined) command.error('error: --apart needs --count.');
}

/** The consumers to place. */
function namedBy({ consumer, count, project }: PlaceOptions, command: Command): readonly NamedConsumer[] {
  const numbers = Array.from({ length: count ?? 1 }, (_, index) => index + 1);
  if (consumer === undefined) return numbers.map(() => ({ uuid: randomUUID() }));
  const one = readOwned(consumer, project, command);
  if (count === undefined) return [one];
  if (one.name === undefined) {
    return command.error(`error: With --count the consumers get names. Give --consumer as a name, not ${consumer}.`);
  }
  return numbers.map((number) => readOwned(`${consumer}-${number}`, project, command));
}

/** Places the consumers, all or none. @returns undefined if the user interrupts it while it waits */
async function claim(
  placement: Placement,
  gang: Gang,
  { dryRun, wait, line }: PlaceOptions,
): Promise<PlacedGang | undefined> {
  const [[consumer, placing], ...more] = entriesOf(gang);
  const ask = async (options: Parameters<Placement['allocations']['place']>[2]): Promise<PlacedGang> => {
    if (more.length === 0) return new Map([[consumer, await placement.allocations.place(consumer, placing, options)]]);
    const placed = await placement.allocations.placeMany(Object.fromEntries(gang), options);
    // A server sends objects in any order, and the names of the consumers are numbered.
    return new Map(Array.from(gang.keys(), (one) => [one, placed[one] ?? { allocations: {} }]));
  };
  if (wait === undefined) return ask({ dryRun });
  return claimWithReports({ placement, consumer, project: placing.project_id }, (signal) =>
    ask({ waitMs: wait * 1000, line, signal }),
  );
}

function entriesOf(gang: Gang): readonly [first: readonly [string, Placing], ...more: (readonly [string, Placing])[]] {
  const [first, ...more] = gang;
  if (first === undefined) throw new RangeError('No consumer is to be placed.');
  return [first, ...more];
}

/** @throws CommandFailure if the consumer has nothing: it may be a misspelled one */
async function readMoved(placement: Placement, consumer: string): Promise<Held> {
  const held = await readHeld(placement, consumer);
  if (hasSomething(held)) return held;
  throw new CommandFailure('wrongInput', `Consumer ${consumer} has nothing that could move. Leave out --move.`);
}

/** The refusal of new consumers, with the names of those that exist already. The service refuses them by the generation, which is null. */
async function asTaken(
  placement: Placement,
  consumers: readonly NamedConsumer[],
  { move }: PlaceOptions,
  error: unknown,
): Promise<Error | undefined> {
  if (move || !isConcurrentUpdate(error)) return undefined;
  const held = await forEach(consumers, ({ uuid }) => readHeld(placement, uuid));
  const taken = consumers.filter((_, index) => hasSomething(held[index]));
  if (taken.length === 0) return undefined;
  const have = `${taken.map(({ uuid, name }) => withName(uuid, name)).join(', ')} ${taken.length === 1 ? 'has' : 'have'}`;
  const lost = error.attempts > 1 ? ' It may be what an attempt has claimed whose answer was lost.' : '';
  return new CommandFailure(
    'conflict',
    `Consumer ${have} something already. "placement allocation show" shows it, --move gives it another place instead.${lost}`,
    { cause: error },
  );
}

const placedColumns = ['consumer', 'name', 'provider', 'uuid', 'resources', 'groups', 'expires'];

function placedText(
  placed: PlacedGang,
  nameOf: (uuid: string) => string,
  { dryRun, move, count }: PlaceOptions,
): Printed {
  const rows = Array.from(placed, ([consumer, { allocations, mappings = {}, name, expires_at }]) =>
    Object.entries(allocations).map(([uuid, { resources }]) => [
      consumer,
      name ?? undefined,
      nameOf(uuid),
      uuid,
      resourcesText(resources),
      Object.entries(mappings)
        .filter(([suffix, providers]) => suffix !== '' && providers.includes(uuid))
        .map(([suffix]) => suffix)
        .join(', '),
      expires_at ?? undefined,
    ]),
  ).flat();
  const [[first, { name, expires_at }] = ['', { name: null, expires_at: null }]] = placed;
  const [subject, it, has] =
    count === undefined
      ? [`Consumer ${withName(first, name)}`, 'it', 'has']
      : [`${placed.size} consumer${placed.size === 1 ? '' : 's'}`, 'they', 'have'];
  const until = expires_at == null ? 'now' : `until ${expires_at}`;
  const sentence = dryRun
    ? `${subject} would get this${move ? `, in the place of what ${it} ${has}` : ''}. Nothing was written.`
    : `${subject} ${has} this ${until}${move ? `, in the place of what ${it} had` : ''}.`;
  const undrawn = ['expires', ...(count === undefined ? ['consumer', 'name'] : [])];
  return [sentence, { head: placedColumns, rows, undrawn }];
}
