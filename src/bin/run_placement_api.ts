import { Command } from 'commander';
import type { Override } from '../config/sources.ts';
import { checkReadiness } from '../start/check.ts';
import { addConfigFlags, loadConfig, problemsOf } from '../start/config_flags.ts';
import { exitCodeOf } from '../start/exit_code.ts';
import { runCommand } from '../start/run_command.ts';
import { print } from '../text/print.ts';
import type { ApiFlags } from './serve_placement_api.ts';

/** The program placement-api: reads the command line of this process, and serves. */
export async function placementApi(): Promise<void> {
  const program = addConfigFlags(new Command('placement-api'))
    .description('Serves the OpenStack Placement API.')
    .option('--host <address>', 'the address to listen on, or unix:/FILE, instead of [api] host')
    .option('--port <number>', 'the port to listen on, instead of [api] port; 0 for any free one')
    .option('--workers <number>', 'how many processes serve the port, instead of [api] workers; needs PostgreSQL')
    .option('--check', 'ask the service that runs with this configuration whether it is ready: 0 if so, else 1')
    .option('--show-config', 'print each option: its purpose, its value, and the source of the value')
    .action(run);
  // The callers of a check, such as Docker, know no other exit codes.
  const failed = (error: unknown): number => (program.opts<ApiFlags>().check ? 1 : exitCodeOf(error));
  await runCommand(program, { failed, noCommand: 1, problemsOf });
}

async function run(flags: ApiFlags): Promise<void> {
  const overrides: readonly Override[] = [
    ...(flags.host === undefined ? [] : [{ group: 'api', name: 'host', text: flags.host, flag: '--host' }]),
    ...(flags.port === undefined ? [] : [{ group: 'api', name: 'port', text: flags.port, flag: '--port' }]),
    ...(flags.workers === undefined ? [] : [{ group: 'api', name: 'workers', text: flags.workers, flag: '--workers' }]),
  ];
  if (flags.check && !flags.showConfig) return print(await checkReadiness(loadConfig(flags, overrides).config));
  // A health check runs every few seconds. The modules that serve are loaded only after it.
  const { serve } = await import('./serve_placement_api.ts');
  await serve(flags, overrides);
}
