import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import {
  isConcurrentUpdate,
  isNoCandidates,
  type PlacedByQuery,
  type Placement,
  type Placing,
  type UnlimitedQuery,
} from '../client/index.ts';
import { withName } from '../placement/uuid.ts';
import { printError } from '../text/print.ts';
import { resourcesText } from './amounts.ts';
import { queryHelp, takeQuery, takeTreeOptions } from './candidate_query.ts';
import { expiresInOption, readOwned, typeOption } from './consumer_argument.ts';
import { CommandFailure, exitCodes } from './exit_codes.ts';
import { explainedQuery, explanationText } from './explanation_text.ts';
import { namesOf } from './find_provider.ts';
import { type Held, hasSomething, type OwnerOptions, ownerOf, readHeld } from './held.ts';
import { shellOf } from './shell.ts';
import { table } from './table.ts';
import { waitingAloud, waitOption } from './wait.ts';

type PlaceOptions = OwnerOptions & {
  readonly consumer?: string;
  readonly move?: true;
  readonly dryRun?: true;
  readonly wait?: number;
  readonly line?: string;
};

/** Adds `allocation place`, which finds a place and claims it in one request; from 2.4. */
export function addPlaceCommand(allocation: Command): void {
  const place = allocation
    .command('place')
    .description('find a place for a consumer and claim it, in one step; from 2.4');
  const readQuery = takeQuery(place);
  takeTreeOptions(place)
    .option('--consumer <consumer>', 'its UUID, or its name in the project; a new one with a random UUID by default')
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
    .addHelpText('after', 'With --wait, Ctrl-C gives the claim up; the exit code is then 130.')
    .action(async (_amounts: unknown, options: PlaceOptions, command: Command) => {
      const { dryRun } = options;
      if (options.line !== undefined && options.wait === undefined) return command.error('error: --line needs --wait.');
      if (options.move && options.consumer === undefined) return command.error('error: --move needs --consumer.');
      const shell = shellOf(command);
      const query = await readQuery(command, shell);
      const named = options.consumer === undefined ? undefined : readOwned(options.consumer, options.project, command);
      const { uuid: consumer } = named ?? { uuid: randomUUID() };
      const held = options.move && (await readMoved(shell.placement, consumer));
      const owner = ownerOf(held, named, options, command);
      const placed = await explained(shell.placement, query, () =>
        claim(shell.placement, consumer, { candidates: query, ...owner }, options),
      ).catch((error: unknown) => {
        throw held === undefined ? asTaken(error, withName(consumer, named?.name)) : error;
      });
      if (placed === undefined) {
        printError(
          'It does not wait any more. If it was placed in this moment, ' +
            `"placement allocation show ${consumer}" shows it.`,
        );
        process.exitCode = exitCodes.interrupted.code;
        return;
      }
      const names = placed.resource_providers;
      const nameOf =
        names === undefined
          ? await namesOf(shell.placement, Object.keys(placed.allocations)) // below 2.7
          : (uuid: string) => names[uuid]?.name ?? uuid;
      shell.print({ consumer, ...placed }, () => {
        return placedText(consumer, placed, nameOf, { isDryRun: dryRun === true, isMoved: held !== undefined });
      });
    });
}

/** Places the consumer. @returns undefined if the user interrupts it while it waits */
function claim(
  placement: Placement,
  consumer: string,
  placing: Placing,
  { dryRun, wait, line }: PlaceOptions,
): Promise<PlacedByQuery | undefined> {
  const { allocations } = placement;
  if (wait === undefined) return allocations.place(consumer, placing, { dryRun });
  return waitingAloud({ placement, consumer, project: placing.project_id }, (signal) =>
    allocations.place(consumer, placing, { waitMs: wait * 1000, line, signal }),
  );
}

/** @throws CommandFailure if the consumer has nothing: it may be a misspelled one */
async function readMoved(placement: Placement, consumer: string): Promise<Held> {
  const held = await readHeld(placement, consumer);
  if (hasSomething(held)) return held;
  throw new CommandFailure('wrongInput', `Consumer ${consumer} has nothing that could move. Leave out --move.`);
}

/** Says of the refusal of a new consumer that there is one already. The service refuses it by the generation, which is null. */
function asTaken(error: unknown, consumer: string): unknown {
  if (!isConcurrentUpdate(error)) return error;
  const lost = error.attempts > 1 ? ' (If it had nothing before: an attempt whose answer was lost has placed it.)' : '';
  const hint = `"placement allocation show" shows it, --move gives it another place instead.${lost}`;
  return new CommandFailure('conflict', `Consumer ${consumer} has something already. ${hint}`, { cause: error });
}

/** Adds to a refusal because nothing fits why that is so. */
async function explained(
  placement: Placement,
  query: UnlimitedQuery,
  claim: () => Promise<PlacedByQuery | undefined>,
): Promise<PlacedByQuery | undefined> {
  try {
    return await claim();
  } catch (error) {
    if (!isNoCandidates(error)) throw error;
    const explanation = await explainedQuery(placement, query);
    if (explanation === undefined) throw error;
    throw new Error(`${error.message}\n${explanationText(explanation)}`, { cause: error });
  }
}

function placedText(
  consumer: string,
  { allocations, mappings, expires_at, name }: PlacedByQuery,
  nameOf: (uuid: string) => string,
  { isDryRun, isMoved }: { readonly isDryRun: boolean; readonly isMoved: boolean },
): string {
  const rows = Object.entries(allocations).map(([uuid, { resources }]) => [
    nameOf(uuid),
    uuid,
    resourcesText(resources),
    Object.entries(mappings)
      .filter(([suffix, providers]) => suffix !== '' && providers.includes(uuid))
      .map(([suffix]) => suffix)
      .join(', '),
  ]);
  const shown = withName(consumer, name);
  const sentence = isDryRun
    ? `Consumer ${shown} would get this${isMoved ? ', in the place of what it has' : ''}. Nothing was written.`
    : `Consumer ${shown} has this ${expires_at == null ? 'now' : `until ${expires_at}`}${isMoved ? ', in the place of what it had' : ''}.`;
  return `${sentence}\n${table(['provider', 'uuid', 'resources', 'groups'], rows)}`;
}
