import { Command, InvalidArgumentError, Option } from 'commander';
import { holdToContract } from './gabbi/contract.ts';
import { type OpenServer, runFolder } from './gabbi/folder.ts';
import { runInOwnProcess } from './gabbi/own_process.ts';
import { count, fileReport, sum, type Totals, totalLine } from './gabbi/report.ts';
import { openByCommand } from './gabbi/server_command.ts';
import { type Engine, engines, postgresqlServer } from './support/engines.ts';
import { keepDatabases } from './support/kept_databases.ts';
import { useMemoryFolder } from './support/memory_folder.ts';
import { createDatabase } from './support/postgresql.ts';

/*
 * Runs the gabbi files of a folder against this service in this process, where every exchange must also match
 * openapi.yaml. With --server it runs them against any other implementation of the API. Each of two engines has a process of its own,
 * so that both run at the same time.
 */

type Options = {
  readonly engine: Engine | 'both';
  readonly only: readonly string[];
  readonly exclude: readonly string[];
  readonly jobs: number;
  readonly maxMicroversion?: string;
  readonly server?: string;
};

const collect = (value: string, before: readonly string[]) => [...before, value];
const positive = (value: string): number => {
  if (/^[1-9]\d*$/.test(value)) return Number(value);
  throw new InvalidArgumentError('It must be a positive number.');
};

const command = new Command('conformance')
  .description('Run all gabbi files (*.yaml) of a folder, each on a fresh database.')
  .argument('<folder>', 'the folder of the gabbi files')
  .addOption(new Option('--engine <engine>', 'the database').choices([...engines, 'both']).default('embedded'))
  .option('--only <glob>', 'only the files whose name matches (repeatable)', collect, [])
  .option('--exclude <glob>', 'not the files whose name matches (repeatable)', collect, [])
  .option('--jobs <number>', 'how many files run at the same time', positive, 2)
  .option('--max-microversion <version>', 'the newest that is spoken; upstream ends at 1.39')
  .option('--server <command>', 'a shell command that serves on port {port} with the configuration file {config}')
  .parse();

const [folder = ''] = command.args;
const options = command.opts<Options>();

const total = options.engine === 'both' ? await runOnBoth() : await runOn(options.engine);
// To the process that started this one: test/gabbi/own_process.ts.
if (process.send !== undefined) process.send(total);
else conclude(total);

function conclude(total: Totals): void {
  if (total.passed + total.failed + total.skipped === 0) {
    console.error(`No test was found in ${folder}. Name a folder with *.yaml files, and globs that match some.`);
  }
  console.log(totalLine(total));
  process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
}

async function runOnBoth(): Promise<Totals> {
  const removeMemoryFolder = await useMemoryFolder();
  try {
    return sum(await Promise.all(engines.map((engine) => runInOwnProcess(process.argv.slice(2), engine))));
  } finally {
    await removeMemoryFolder();
  }
}

async function runOn(engine: Engine): Promise<Totals> {
  const label = process.send === undefined ? '' : engine;
  const stopKeeping = keepDatabases();
  const results = await runFolder({
    ...options,
    folder,
    open: speakingUpTo(options.maxMicroversion, await opener(engine, options.server)),
    // Another implementation may differ from openapi.yaml in points that the gabbi files do not check.
    observe: options.server === undefined ? holdToContract : undefined,
    report: (result) => console.log(fileReport(label, result)),
  });
  await stopKeeping();
  return sum(results.map(({ tests }) => count(tests)));
}

function speakingUpTo(maxMicroversion: string | undefined, open: OpenServer): OpenServer {
  if (maxMicroversion === undefined) return open;
  return ({ config, policy }) => open({ config: { ...config, api: { ...config.api, maxMicroversion } }, policy });
}

async function opener(engine: Engine, server: string | undefined): Promise<OpenServer> {
  if (server === undefined) {
    // Another implementation is tested without loading this one.
    const { openInProcess } = await import('./gabbi/in_process.ts');
    return openInProcess(engine);
  }
  if (engine === 'embedded') return openByCommand(server);
  const url = await postgresqlServer();
  return openByCommand(server, () => createDatabase(url));
}
