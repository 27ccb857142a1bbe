import type { Command } from 'commander';
import { fillDemo } from '../demo/fill.ts';
import { liveDemo } from '../demo/live.ts';
import { printError } from '../text/print.ts';
import { wholeNumber } from './amounts.ts';
import { shellOf } from './shell.ts';

type DemoOptions = { readonly hosts: number; readonly live?: true };

/** Adds `demo` to the commands. */
export function addDemoCommand(program: Command): void {
  program
    .command('demo')
    .description(
      'fill an empty service with a fleet to look at: racks, NUMA nodes, GPUs, shared disks, consumers; from 2.4',
    )
    .option('--hosts <number>', 'how many hosts', readHosts, 1000)
    .option('--live', 'then keep scheduling, until it is interrupted')
    .action(async ({ hosts, live }: DemoOptions, command: Command) => {
      const { placement, print } = shellOf(command, []);
      const filled = await fillDemo(placement, hosts, (line) => printError(line));
      print(
        { hosts, providers: filled.providers, consumers: filled.consumers.length },
        () => `There are ${hosts} hosts of ${filled.providers} providers, and ${filled.consumers.length} consumers.`,
      );
      if (!live) return;
      printError('Consumers come and go, and from 2.9 on jobs wait in a line, until this is interrupted.');
      await liveDemo(placement, filled.consumers);
    });
}

/** @throws InvalidArgumentError, which commander prints with the argument */
export const readHosts = wholeNumber(1, 20_000);
