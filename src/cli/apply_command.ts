import { readFile } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Placement, WholeProvider } from '../client/index.ts';
import { messageOf, print, printError } from '../text/print.ts';
import { decodeUtf8 } from '../text/strings.ts';
import { collect } from './amounts.ts';
import { CommandFailure } from './exit_codes.ts';
import { findProvider } from './find_provider.ts';
import type { Applied } from './fleet/carry_out.ts';
import type { FleetFile } from './fleet/fleet_file.ts';
import type { FleetPlan } from './fleet/plan.ts';
import { overuseOf, warnOfOveruse } from './overuse.ts';
import { type Shell, shellOf } from './shell.ts';

type ApplyOptions = { readonly file: string; readonly dryRun?: true; readonly prune?: true };
type ExportOptions = { readonly namesFrom?: readonly string[] };

const applyHelp = `
A file, in YAML or JSON:
  pool: gpus                      # for --prune; the providers that are made get its mark
  providers:
    - name: gpu-1                 # one that exists is found by its name
      inventories:
        MEMORY_MB: { total: 65536, reserved: 512 }
      traits: [HW_CPU_X86_AVX2]
      aggregates: [rack-7]        # names or UUIDs
      children:
        - name: gpu-1-card-0
          inventories: { PGPU: 4 }
          traits: [CUSTOM_GPU_80GB]
Classes, traits and aggregates that a key does not list are taken away. What the file leaves out stays: a key of a provider, a field
of an inventory, a provider. docs/fleet_files.md says more.`;

/** Adds `apply` and `export`. What they need is loaded when one of them runs: it would slow down every other command. */
export function addFleetCommands(program: Command): void {
  program
    .command('apply')
    .description('make providers as a file says: shows the difference and writes it; from 2.2')
    .requiredOption('-f, --file <file>', 'the file, in YAML or JSON; - for standard input')
    .option('--dry-run', 'show the difference, and write nothing')
    .option('--prune', 'delete providers that this file has made and that are gone from it; needs its key pool')
    .addHelpText('after', applyHelp)
    .action(async (options: ApplyOptions, command: Command) => {
      const shell = shellWithoutTable(command);
      const { placement } = shell;
      const file = await readFleet(options.file);
      if (options.prune && file.pool === undefined) {
        throw new CommandFailure(
          'wrongInput',
          `${options.file}: --prune needs the key pool, by which it knows what files of this pool have made.`,
        );
      }
      const [{ planApply }, { few }, present, classes, traits] = await Promise.all([
        import('./fleet/plan.ts'),
        import('./fleet/fleet_file.ts'),
        Array.fromAsync(placement.providerSummaries.list()),
        placement.resourceClasses.list(),
        placement.traits.list(),
      ]);
      const known = { classes: new Set(classes), traits: new Set(traits) };
      const plan = planApply(file, present, known, { prune: options.prune === true });
      if (plan.problems.length > 0) throw new CommandFailure('wrongInput', few(plan.problems));
      await show(shell, { file, plan, present, dryRun: options.dryRun === true });
    });
  program
    .command('export')
    .description(
      'print providers in the form of a file for "placement apply": whole trees, with all that they have; from 2.2',
    )
    .argument('[provider...]', 'the roots of trees, by name or UUID; all trees by default')
    .option(
      '--names-from <file>',
      'show aggregates by the names of this file; may be repeated. Others are UUIDs: the service knows no names of them',
      collect,
    )
    .addHelpText('after', '\nYAML by default; --json prints the same as JSON, which "placement apply" reads as well.')
    .action(async (roots: readonly string[], { namesFrom = [] }: ExportOptions, command: Command) => {
      const { placement, print } = shellWithoutTable(command);
      const files = await Promise.all(namesFrom.map(readFleet));
      const names = new Map(files.flatMap(({ aggregateNames }) => [...aggregateNames]));
      const { exportFleet, yamlOf } = await import('./fleet/export_fleet.ts');
      const fleet = exportFleet(await readTrees(placement, roots), names);
      print(fleet, () => yamlOf(fleet));
    });
}

/** These commands print no table. */
function shellWithoutTable(command: Command): Shell {
  const shell = shellOf(command, []);
  if (shell.format === 'table' || shell.format === 'json') return shell;
  return command.error(`error: This prints no table, so that --format ${shell.format} has nothing. Use --format json.`);
}

async function readFleet(path: string): Promise<FleetFile> {
  const { readFleetFile } = await import('./fleet/fleet_file.ts');
  let content: string;
  try {
    content = decodeUtf8(path === '-' ? await buffer(process.stdin) : await readFile(path));
  } catch (error) {
    const why = error instanceof TypeError ? 'it is no text in UTF-8' : messageOf(error);
    throw new CommandFailure('wrongInput', `The file ${path} cannot be read: ${why}`, { cause: error });
  }
  return readFleetFile(content, path === '-' ? 'standard input' : path);
}

type Applying = {
  readonly file: FleetFile;
  readonly plan: FleetPlan;
  readonly present: readonly WholeProvider[];
  readonly dryRun: boolean;
};

/** Shows the difference, and then writes it. With `--json` one value is printed at the end. */
async function show(shell: Shell, { file, plan, present, dryRun }: Applying): Promise<void> {
  const { planText, planJson, isEmpty, stepText } = await import('./fleet/plan_text.ts');
  const isJson = shell.format === 'json';
  const say = (text: string): void => {
    if (!isJson && text !== '') print(text);
  };
  say(planText(plan, file.aggregateNames));
  warnOfOveruse(overusedBy(plan, present));
  const nothing = { made: 0, changed: 0, deleted: 0, kept: plan.kept };
  let applied: Applied = nothing;
  if (isEmpty(plan)) {
    say(`Nothing to change: ${counted(plan.unchanged)} as the file says.`);
  } else if (dryRun) {
    say(`${countsText(plan)} Nothing was written.`);
  } else {
    const { carryOut } = await import('./fleet/carry_out.ts');
    applied = await carryOut(shell.placement, file, plan, present, (name, step) => {
      const now =
        step === undefined
          ? 'It is as the file says now.'
          : `The difference is now:\n${stepText(step, file.aggregateNames)}`;
      printError(`Another program has changed ${name}. ${now}`);
    });
    say(`Done: ${applied.made} made, ${applied.changed} changed, ${applied.deleted} deleted.`);
  }
  if (isJson) shell.print({ ...planJson(plan), dry_run: dryRun, applied }, () => '');
  if (applied.kept.length === 0 || dryRun) return;
  const why = applied.kept.map(({ name, why }) => `${name}: ${why}`).join('\n');
  throw new CommandFailure('conflict', `${counted(applied.kept.length)} gone from the file and not deleted.\n${why}`);
}

/** Of which classes less is left than is used, with their providers. */
function overusedBy({ waves }: FleetPlan, present: readonly WholeProvider[]): readonly string[] {
  const usages = new Map(present.map((each) => [each.uuid, each.usages]));
  return waves.flat().flatMap(({ name, uuid, inventories }) => {
    const after = inventories.map((change) => [change.resource_class, change.after] as const);
    return overuseOf(after, usages.get(uuid) ?? {}).map((text) => `${text} of ${name}`);
  });
}

const counted = (count: number): string => (count === 1 ? '1 provider is' : `${count} providers are`);

function countsText({ waves, deletions, unchanged }: FleetPlan): string {
  const steps = waves.flat();
  const made = steps.filter(({ generation }) => generation === undefined).length;
  const counts = [`${made} to make`, `${steps.length - made} to change`, `${deletions.flat().length} to delete`];
  return `${counts.join(', ')}, ${unchanged} as the file says.`;
}

/** Reads all providers; if roots are named, only their trees. */
async function readTrees(placement: Placement, roots: readonly string[]): Promise<readonly WholeProvider[]> {
  if (roots.length === 0) return Array.fromAsync(placement.providerSummaries.list());
  const found = await Promise.all(roots.map((root) => findProvider(placement, root)));
  const uuids = new Set(found.map(({ uuid, root_provider_uuid = uuid }) => root_provider_uuid));
  const trees: (readonly WholeProvider[])[] = [];
  for (const in_tree of uuids) trees.push(await Array.fromAsync(placement.providerSummaries.list({ in_tree })));
  return trees.flat();
}
