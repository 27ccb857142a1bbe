import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import {
  type ConsumerAllocations,
  isNoCandidates,
  type PlacedByQuery,
  type Placement,
  type UnlimitedQuery,
} from '../client/index.ts';
import { resourcesText } from './amounts.ts';
import { queryHelp, takeQuery, takeTreeOptions } from './candidate_query.ts';
import { expiresInOption, type NamedConsumer, readOwned, typeOption } from './consumer_argument.ts';
import { explainedQuery, explanationText } from './explanation_text.ts';
import { namesOf } from './find_provider.ts';
import { shellOf } from './shell.ts';
import { table } from './table.ts';

type PlaceOptions = {
  readonly consumer?: string;
  readonly project?: string;
  readonly user?: string;
  readonly type?: string;
  readonly expiresIn?: number;
  readonly dryRun?: true;
};

/** Adds `allocation place`, which finds a place and claims it in one request; from 2.4. */
export function addPlaceCommand(allocation: Command): void {
  const place = allocation
    .command('place')
    .description('find a place for a consumer and claim it, in one step; from 2.4');
  const readQuery = takeQuery(place);
  takeTreeOptions(place)
    .option('--consumer <consumer>', 'its UUID, or its name in the project; a new one with a random UUID by default')
    .option('--project <id>', 'the project that it is counted for; needed for a new consumer')
    .option('--user <id>', 'the user that it is counted for; the default for a new consumer is the project')
    .addOption(typeOption('the kind of consumer; the default for a new consumer is INSTANCE'))
    .addOption(expiresInOption())
    .option('--dry-run', 'check it and show what it would get, and write nothing')
    .addHelpText(
      'after',
      queryHelp('placement allocation place VCPU=2 MEMORY_MB=2048 --order free:VCPU --project web --dry-run'),
    )
    .action(async (_amounts: unknown, options: PlaceOptions, command: Command) => {
      const shell = shellOf(command);
      const query = await readQuery(command, shell);
      const named = options.consumer === undefined ? undefined : readOwned(options.consumer, options.project, command);
      const { uuid: consumer } = named ?? { uuid: randomUUID() };
      const { dryRun } = options;
      const held = named === undefined ? undefined : await shell.placement.allocations.show(named.uuid);
      const owner = ownerOf(held, named, options, command);
      const placed = await explained(shell.placement, query, () =>
        shell.placement.allocations.place(consumer, { candidates: query, ...owner }, { dryRun }),
      );
      const names = placed.resource_providers;
      const nameOf =
        names === undefined
          ? await namesOf(shell.placement, Object.keys(placed.allocations)) // below 2.7
          : (uuid: string) => names[uuid]?.name ?? uuid;
      shell.print({ consumer, ...placed }, () => {
        const hadBefore = held !== undefined && Object.keys(held.allocations).length > 0;
        return placedText(consumer, placed, nameOf, { isDryRun: dryRun === true, hadBefore });
      });
    });
}

/** Of a consumer that exists what is not given stays as it is. */
function ownerOf(
  held: ConsumerAllocations | undefined,
  named: NamedConsumer | undefined,
  given: PlaceOptions,
  command: Command,
) {
  const project_id = given.project ?? held?.project_id ?? named?.project;
  if (project_id === undefined) {
    return command.error('error: The consumer is new. Give the project that it is counted for, with --project.');
  }
  return {
    project_id,
    user_id: given.user ?? held?.user_id ?? project_id,
    consumer_generation: held?.consumer_generation ?? null,
    consumer_type: given.type ?? held?.consumer_type ?? 'INSTANCE',
    expires_in: given.expiresIn,
  };
}

/** Adds to a refusal because nothing fits why that is so. */
async function explained(
  placement: Placement,
  query: UnlimitedQuery,
  claim: () => Promise<PlacedByQuery>,
): Promise<PlacedByQuery> {
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
  { allocations, mappings, expires_at }: PlacedByQuery,
  nameOf: (uuid: string) => string,
  { isDryRun, hadBefore }: { readonly isDryRun: boolean; readonly hadBefore: boolean },
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
  const sentence = isDryRun
    ? `Consumer ${consumer} would get this${hadBefore ? ', in the place of what it has' : ''}. Nothing was written.`
    : `Consumer ${consumer} has this ${expires_at == null ? 'now' : `until ${expires_at}`}${hadBefore ? ', in the place of what it had' : ''}.`;
  return `${sentence}\n${table(['provider', 'uuid', 'resources', 'groups'], rows)}`;
}
