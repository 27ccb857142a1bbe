import type { Command } from 'commander';
import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import {
  deleteLimits,
  readLimits,
  type StoredLimits,
  WritesUnderWay,
  writeLimits,
} from '../../db/statements/limits.ts';
import { readClassNames } from '../../db/statements/names/resource_classes.ts';
import { readUnifiedLimits } from '../access/keystone/unified_limits.ts';
import type { Config } from '../config/config.ts';
import { incompleteOwner } from '../placement/consumer.ts';
import type { ConfigFlags } from '../start/config_flags.ts';
import { addCommandGroup } from '../start/run_command.ts';
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
      'take over the unified limits that Keystone has for one service and region; run it again to follow them. Limits that the API has set are not changed',
    )
    .requiredOption('--from-keystone', 'from the Keystone of [keystone_authtoken], with its user in the system scope')
    .option('--service <name>', 'the id, name or type of the service that the limits are of', 'compute')
    .option(
      '--region <id>',
      'the region of the limits; needed if the service has limits of several; none for those without a region',
    )
    .option('--dry-run', 'only say what would change')
    .action((options: ImportFlags) =>
      withCurrentDatabase(flags(), (database, config) => importLimits(database, config, options)),
    );
}

async function importLimits(database: Database, config: Config, options: ImportFlags): Promise<void> {
  const { dryRun = false, service: named, region: wantedRegion } = options;
  const unified = await readUnifiedLimits(config.keystoneAuthtoken, { service: named, region: wantedRegion });
  const { service, region, registered, limits } = unified;
  const stored = await readAllLimits(database, config);
  const classes = new Set(await readClassNames(database));
  const { changes, unchanged, leftOut } = planImport(unified, stored, classes);
  const where = region === null ? 'without a region' : `region ${region}`;
  print(
    `Keystone, service ${service.name || service.type}, ${where}: registered limits: ${registered.length}, project limits: ${limits.length}.`,
  );
  for (const line of leftOut) print(`Left out: ${line}.`);
  let done = 0;
  for (const change of changes) {
    if (!dryRun && !(await apply(database, change))) {
      printError(
        `placement-manage: ${nameOf(change.project)} changed meanwhile, and stay as they are. Run the import again.`,
      );
      process.exitCode = 1;
      continue;
    }
    done += 1;
    print(`${dryRun ? 'Would be ' : ''}${sentence(change)}`);
  }
  print(`${done} ${dryRun ? 'would be changed' : 'changed'}, ${unchanged} unchanged, ${leftOut.length} left out.`);
}

/**
 * @returns false if the API has changed them since they were read
 * @throws Error where other writes did not end in time
 */
async function apply(database: Database, { project, values, known }: LimitChange): Promise<boolean> {
  try {
    return await repeatLostRaces(async () =>
      values === undefined
        ? deleteLimits(database, project, known ?? undefined)
        : (await writeLimits(database, { project, ...values, known, isImported: true })) !== undefined,
    );
  } catch (error) {
    if (!(error instanceof WritesUnderWay)) throw error;
    throw new Error('Other programs are writing allocations, and did not end in time. Run the import again.');
  }
}

const nameOf = (project: string): string => (project === '' ? 'the defaults' : `the limits of project ${project}`);

function sentence({ project, values, known }: LimitChange): string {
  if (values === undefined) return `deleted, since Keystone has none: ${nameOf(project)}`;
  const named = [
    ...Object.entries(values.resources),
    ...Object.entries(values.consumers).map(([type, value]) => [`consumers ${type}`, value] as const),
  ];
  const text = named.map(([name, value]) => `${name} ${value ?? 'unlimited'}`).join(', ');
  return `${known === null ? 'stored' : 'replaced'}: ${nameOf(project)}: ${text}`;
}

const pageSize = 1000;

/** The values of all projects that have some, and the defaults. */
async function readAllLimits(database: Database, config: Config): Promise<readonly StoredLimits[]> {
  const all: StoredLimits[] = [];
  for (let after = ''; ; ) {
    const page = { after, limit: pageSize };
    const { defaults, projects } = await readLimits(database, page, incompleteOwner(config).projectId);
    if (after === '' && defaults !== undefined) all.push(defaults);
    all.push(...projects.flatMap(({ own }) => (own === undefined ? [] : [own])));
    if (projects.length < pageSize) return all;
    after = projects.at(-1)?.project ?? '';
  }
}
