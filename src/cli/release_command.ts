import type { Command } from 'commander';
import { instead } from '../client/errors.ts';
import { sumOfResources } from '../client/filters.ts';
import { forEach } from '../client/for_each.ts';
import { type Holding, isNotFound, type Placement, type Resources, retryConflicts } from '../client/index.ts';
import { sharingTrait } from '../placement/inventory.ts';
import { messageOf } from '../text/print.ts';
import { counted } from '../text/strings.ts';
import { resourcesText } from './amounts.ts';
import { CommandFailure } from './exit_codes.ts';
import { findProvider } from './find_provider.ts';
import { holdingsIn } from './holders.ts';
import { shellOf } from './shell.ts';
import type { TextTable } from './table.ts';

type ReleaseOptions = { readonly inTree: string; readonly all?: boolean; readonly dryRun?: boolean };

/** What became of a consumer. */
type Outcome = 'released' | 'to be released' | 'holds more elsewhere' | 'moved away' | 'gone already' | 'failed';

type ReleasedConsumer = {
  readonly consumer: string;
  readonly name: string | null;
  readonly project_id: string;
  readonly consumer_type: string;
  /** What it held in the tree, and in other ones. */
  readonly here: Resources;
  readonly elsewhere: Resources;
  readonly outcome: Outcome;
  readonly problem?: string;
};

const help = `
A consumer that also holds something in another tree may run there: it is listed, and not released without --all.
What it holds of a provider that shares, such as a licence, does not count, and is released with the rest. Each
consumer is released only if it still holds what was read, so one that moves away meanwhile keeps what it gets
elsewhere. Drain the host first, so that no new claims come. Exit code 5 if something is still held in the tree.
Example: placement drain gpu-1; placement release --in-tree gpu-1 --dry-run`;

/** Adds `release`, for hosts that are dead. */
export function addReleaseCommand(program: Command): void {
  program
    .command('release')
    .description('delete the allocations of all consumers that hold something of a host that is dead; from 2.9')
    .requiredOption('--in-tree <provider>', 'the host: its name or UUID, or that of any provider of its tree')
    .option('--all', 'also consumers that hold something in another tree, and all that they hold')
    .option('--dry-run', 'list the consumers, and delete nothing')
    .addHelpText('after', help)
    .action(async ({ inTree, all = false, dryRun = false }: ReleaseOptions, command: Command) => {
      const { placement, print } = shellOf(command, [columns]);
      const { uuid, name } = await findProvider(placement, inTree);
      const providers = new Set((await placement.providers.list({ in_tree: uuid })).map((one) => one.uuid));
      const sharing = new Set((await placement.providers.list({ required: [sharingTrait] })).map((one) => one.uuid));
      const holders = new Map((await holdingsIn(placement, uuid)).map((holding) => [holding.consumer, holding]));
      const failures: unknown[] = [];
      const release = { placement, providers, sharing, all, dryRun, failures };
      const consumers = await forEach([...holders.values()], (holder) => releaseConsumer(release, holder));
      const of = (outcome: Outcome) => consumers.filter((one) => one.outcome === outcome).length;
      const sentence = dryRun
        ? `${counted(of('to be released'), 'consumer')} would be released. Nothing was deleted.`
        : `Released: ${counted(of('released'), 'consumer')}.`;
      print({ consumers, dry_run: dryRun }, () =>
        consumers.length === 0
          ? [{ head: columns, rows: [], orElse: `No consumer holds anything in the tree of ${name}.` }]
          : [consumersTable(consumers), sentence],
      );
      if (failures.length > 0) {
        const [cause] = failures;
        throw new Error(`${counted(failures.length, 'consumer')} not released: ${messageOf(cause)}`, { cause });
      }
      if (dryRun) return;
      const left = new Set((await holdingsIn(placement, uuid)).map(({ consumer }) => consumer));
      if (left.size === 0) return;
      const elsewhere = of('holds more elsewhere');
      const reasons = [
        ...(elsewhere > 0 ? [`${counted(elsewhere, 'consumer')} not released: --all releases them everywhere`] : []),
        ...(left.size > elsewhere
          ? ['other consumers have claimed something meanwhile, which "placement drain" prevents']
          : []),
      ];
      throw new CommandFailure('conflict', `Something is still held in the tree of ${name}: ${reasons.join('; ')}.`);
    });
}

type Release = {
  readonly placement: Placement;
  /** The providers of the tree. */
  readonly providers: ReadonlySet<string>;
  /** Providers that share what they have with other trees: no consumer runs there. */
  readonly sharing: ReadonlySet<string>;
  readonly all: boolean;
  readonly dryRun: boolean;
  /** Gets what was thrown for each consumer that could not be released. */
  readonly failures: unknown[];
};

/** Releases a consumer, if it still has to be. Another client may write it at the same time: then it is read and judged again. */
async function releaseConsumer(release: Release, holder: Holding): Promise<ReleasedConsumer> {
  const { consumer, name, project_id, consumer_type } = holder;
  const owner = { consumer, name, project_id, consumer_type };
  try {
    return await retryConflicts(async () => ({ ...owner, ...(await judgeConsumer(release, consumer)) }));
  } catch (error) {
    release.failures.push(error);
    return { ...owner, here: holder.resources, elsewhere: {}, outcome: 'failed', problem: messageOf(error) };
  }
}

async function judgeConsumer({ placement, providers, sharing, all, dryRun }: Release, consumer: string) {
  const { allocations, etag } = await placement.allocations.show(consumer);
  const held = Object.entries(allocations).map(([provider, { resources }]) => ({ provider, resources }));
  const here = held.filter(({ provider }) => providers.has(provider));
  const elsewhere = held.filter(({ provider }) => !providers.has(provider));
  const outcome = async (): Promise<Outcome> => {
    if (held.length === 0) return 'gone already';
    if (here.length === 0) return 'moved away';
    if (!all && elsewhere.some(({ provider }) => !sharing.has(provider))) return 'holds more elsewhere';
    if (dryRun) return 'to be released';
    return placement.allocations
      .delete(consumer, { ifMatch: etag })
      .then(() => 'released', instead('gone already', isNotFound));
  };
  const sumOf = (part: typeof held) => sumOfResources(part.map(({ resources }) => resources));
  return { here: sumOf(here), elsewhere: sumOf(elsewhere), outcome: await outcome() };
}

const columns = ['consumer', 'name', 'project', 'type', 'here', 'elsewhere', 'outcome'];

const consumersTable = (consumers: readonly ReleasedConsumer[]): TextTable => ({
  head: columns,
  rows: consumers.map((one) => [
    one.consumer,
    one.name ?? undefined,
    one.project_id,
    one.consumer_type,
    resourcesText(one.here),
    resourcesText(one.elsewhere),
    one.outcome,
  ]),
});
