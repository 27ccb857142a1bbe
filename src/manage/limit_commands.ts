import type { Command } from 'commander';
import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import { deleteLimits, readLimits, type StoredLimits, writeLimits } from '../../db/statements/limits.ts';
import { readClassNames } from '../../db/statements/names/resource_classes.ts';
import { readUnifiedLimits } from '../access/keystone/unified_limits.ts';
import type { Config } from '../config/config.ts';
import { addCommandGroup, type ConfigFlags } from '../start/command_line.ts';
import { print, printError } from '../text/print.ts';
import { withCurrentDatabase } from './configured_database.ts';
import { type LimitChange, planImport } from './imported_limits.ts';

type ImportFlags = {
  readonly fromKeystone?: true;
  readonly service: string;
  readonly region?: string;
  readonly dryRun?: true;
};

/** Adds `limits import` to a program. */
export function addLimitCommands(program: Command, flags: () => ConfigFlags): void {
  const limits = addCommandGroup(program, 'limits', 'limits of projects');
  limits
    .command('import')
    .description(
      'take over the unified limits that Keystone has for a service; run it again to follow them. Limits that were set otherwise stay',
    )
    .requiredOption('--from-keystone', 'from the Keystone of [keystone_authtoken], with its user in the system scope')
    .option('--service <name>', 'the id, name or type of the service that the limits are of', 'compute')
    .option('--region <id>', 'their region, where the service has limits of several')
    .option('--dry-run', 'only say what would change')
    .action((options: ImportFlags) =>
      withCurrentDatabase(flags(), (database, config) => importLimits(database, config, options)),
    );
}

async function importLimits(database: Database, config: Config, options: ImportFlags): Promise<void> {
  const { service: asked, region: askedRegion, dryRun = false } = options;
  const unified = await readUnifiedLimits(config.keystoneAuthtoken, { service: asked, region: askedRegion });
  const { service, region } = unified;
  const stored = await readAllLimits(database, config);
  const classes = new Set(await readClassNames(database));
  const { changes, unchanged, leftOut } = planImport(unified, stored, classes);
  print(
    `Keystone has ${unified.registered.length} registered limits and ${unified.limits.length} of projects for service ` +
      `${service.name || service.type}, ${region === null ? 'without a region' : `region ${region}`}.`,
  );
  for (const line of leftOut) print(`Left out: ${line}.`);
  for (const change of changes) {
    if (!dryRun) await apply(database, change);
    print(`${dryRun ? 'Would be ' : ''}${sentence(change)}`);
  }
  print(
    `${changes.length} ${dryRun ? 'would be changed' : 'changed'}, ${unchanged} unchanged, ${leftOut.length} left out.`,
  );
}

/** @throws Error where the API has changed them since they were read */
async function apply(database: Database, { project, values, known }: LimitChange): Promise<void> {
  const isDone = await repeatLostRaces(async () =>
    values === undefined
      ? deleteLimits(database, project, known ?? undefined)
      : (await writeLimits(database, { project, ...values, known, isImported: true })) !== undefined,
  );
  if (isDone) return;
  printError(`placement-manage: ${nameOf(project)} changed meanwhile. Run the import again.`);
  process.exitCode = 1;
}

const nameOf = (project: string): string => (project === '' ? 'the defaults' : `the limits of project ${project}`);

function sentence({ project, values, known }: LimitChange): string {
  if (values === undefined) return `deleted, since Keystone has none: ${nameOf(project)}`;
  const named = [
    ...Object.entries(values.resources),
    ...Object.entries(values.consumers).map(([type, value]) => [`consumers ${type}`, value] as const),
  ];
  const text = named.map(([name, value]) => `${name} ${value ?? 'any'}`).join(', ');
  return `${known === null ? 'stored' : 'replaced'}: ${nameOf(project)}: ${text}`;
}

const pageSize = 1000;

/** The values of all projects that have some, and the defaults. */
async function readAllLimits(database: Database, { placement }: Config): Promise<readonly StoredLimits[]> {
  const all: StoredLimits[] = [];
  for (let after = ''; ; ) {
    const asked = { after, limit: pageSize };
    const { defaults, projects } = await readLimits(database, asked, placement.incompleteConsumerProjectId);
    if (after === '' && defaults !== undefined) all.push(defaults);
    all.push(...projects.flatMap(({ own }) => (own === undefined ? [] : [own])));
    if (projects.length < pageSize) return all;
    after = projects.at(-1)?.project ?? '';
  }
}
