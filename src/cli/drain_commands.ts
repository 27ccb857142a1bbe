import type { Command } from 'commander';
import type { Holding, Placement } from '../client/index.ts';
import { timeoutSignal } from '../client/repeat.ts';
import { printError } from '../text/print.ts';
import { counted } from '../text/strings.ts';
import { reservedBeforeDrain, withoutDrain } from './drain_marks.ts';
import { type ChangedTree, drainTree, readTree, undrainTree } from './drain_tree.ts';
import { CommandFailure, exitCodes } from './exit_codes.ts';
import { findProvider, providerArgument } from './find_provider.ts';
import { holderCount, holdersText, holdingColumns, holdingsIn, holdingsTable } from './holders.ts';
import { addReleaseCommand } from './release_command.ts';
import { shellOf } from './shell.ts';
import { shellWord } from './shell_word.ts';
import { timeOption } from './wait.ts';

type DrainOptions = { readonly untilEmpty?: true; readonly wait?: number };

const drainHelp = `
What is there stays, also where its consumers are written again with as much or less. Of each class as much is reserved as there is;
what was reserved before is remembered on the providers, as traits CUSTOM_DRAINED_CLASS_AMOUNT, so that "placement undrain" restores it
from any machine. It may be repeated at any time, also after it was stopped half-way, or where another program has written
the inventories since. A host of Nova: disable its service instead, since nova-compute writes the inventories again (docs/operations.md).

Ctrl-C ends the wait, and the host stays drained. The exit code is ${exitCodes.notYet.code} if --wait is over and something is still held.
Example: placement drain gpu-1 --until-empty --wait 2h && ssh gpu-1 poweroff`;

/** Adds `drain`, `undrain` and `release`: the maintenance of hosts. */
export function addDrainCommands(program: Command): void {
  program
    .command('drain')
    .description(
      'let a host and its whole tree accept no new claims, and show which consumers hold something; from 2.9',
    )
    .argument(...providerArgument)
    .option('--until-empty', 'wait until nothing is held in the tree any more')
    .addOption(timeOption('with --until-empty: wait so long at most, such as 2h'))
    .addHelpText('after', drainHelp)
    .action(async (which: string, { untilEmpty, wait }: DrainOptions, command: Command) => {
      if (wait !== undefined && !untilEmpty) return command.error('error: --wait needs --until-empty.');
      const { placement, print } = shellOf(command, [holdingColumns]);
      const { uuid, name } = await findProvider(placement, which);
      // A service that is too old for this is found out before anything is written.
      await holdingsIn(placement, uuid);
      const done = await drainTree(placement, uuid);
      const holdings = await holdingsIn(placement, uuid);
      print({ ...shown(done), holdings }, () => [
        drainedText(name, done),
        holdingsTable(holdings),
        `${holderCount(holdings)} in the tree of ${name}.`,
      ]);
      if (!untilEmpty || holdings.length === 0) return;
      if (await isEmptied(placement, uuid, wait, holdings)) {
        printError(`No consumer holds anything in the tree of ${name} any more.`);
        return;
      }
      const left = await holdingsIn(placement, uuid);
      if (left.length === 0) return;
      throw new CommandFailure('notYet', `${holderCount(left)} in the tree of ${name} still: ${holdersText(left)}.`);
    });
  program
    .command('undrain')
    .description('lift the drain of a host and its whole tree: what was reserved before is reserved again; from 2.2')
    .argument(...providerArgument)
    .action(async (which: string, _options: object, command: Command) => {
      const { placement, print } = shellOf(command, []);
      const { uuid, name } = await findProvider(placement, which);
      const done = await undrainTree(placement, uuid);
      print(shown(done), () =>
        done.changed.length === 0
          ? `No provider in the tree of ${name} was drained.`
          : `The drain is lifted: ${counted(done.changed.length, 'provider')} in the tree of ${name}.`,
      );
      warnOfReserved(done);
      warnOfLostMarks(done);
    });
  addReleaseCommand(program);
}

const shown = ({ tree, changed }: ChangedTree) => ({
  providers: tree.map(({ name, uuid }) => ({ name, uuid })),
  changed: changed.map(({ name, uuid }) => ({ name, uuid })),
});

function drainedText(name: string, { tree, changed }: ChangedTree): string {
  const before = tree.length - changed.length;
  const text = `Drained: ${counted(tree.length, 'provider')} in the tree of ${name}. No new claim fits there.`;
  return before === 0 ? text : `${text} Before already: ${counted(before, 'provider')}.`;
}

const isAllReserved = ({ reserved, total }: { readonly reserved: number; readonly total: number }): boolean =>
  reserved >= total;

/** A total that has become smaller than what was reserved of it, or a class that is gone, or has got another name. */
function warnOfReserved({ changed }: ChangedTree): void {
  for (const provider of changed) {
    const { name } = provider;
    const inventories = Object.entries(withoutDrain(provider).inventories);
    const closed = inventories.filter(([, inventory]) => isAllReserved(inventory)).map(([className]) => className);
    for (const [className, reserved] of reservedBeforeDrain(provider) ?? []) {
      const total = provider.inventories[className]?.total;
      if (total !== undefined && total < reserved) {
        printError(
          `Warning: ${reserved} of ${className} were reserved on ${name}, and there are only ${total} now: all of them are reserved.`,
        );
      } else if (total === undefined && closed.length > 0) {
        printError(
          `Warning: ${name} has no ${className} now, of which ${reserved} were reserved, and all of ${closed.join(', ')} stays reserved. ` +
            `If the class has got another name, restore what was reserved: placement inventory set ${shellWord(name)} CLASS:reserved=${reserved}`,
        );
      }
    }
  }
}

/**
 * Providers that are as a drain leaves them, but without its marks. One whose marks an agent has removed, as it wrote all
 * traits of its host, and one of which an operator has reserved everything look alike: the text leaves the decision to the reader.
 */
function warnOfLostMarks({ tree, changed }: ChangedTree): void {
  for (const provider of tree.filter((each) => !changed.includes(each))) {
    const { name, inventories } = provider;
    const classes = Object.keys(inventories);
    if (classes.length === 0 || !Object.values(inventories).every(isAllReserved)) continue;
    const amounts = classes.map((className) => `${className}:reserved=0`).join(' ');
    printError(
      `Warning: All of ${classes.join(', ')} on ${name} is reserved, and no mark of a drain is there: undrain leaves it. ` +
        `If an agent has removed the marks, open it by: placement inventory set ${shellWord(name)} ${amounts}`,
    );
  }
}

const holdersLine = (holdings: readonly Holding[]): string => `${holderCount(holdings)}: ${holdersText(holdings)}.`;

/**
 * Follows the changes of a tree until nothing is held there.
 *
 * @param shown the allocations that were printed before: only differences are printed
 * @returns false if the time is over
 */
async function isEmptied(
  placement: Placement,
  in_tree: string,
  seconds: number | undefined,
  shown: readonly Holding[],
): Promise<boolean> {
  const signal = timeoutSignal((seconds ?? Number.POSITIVE_INFINITY) * 1000);
  let read: string | undefined;
  let told = holdersLine(shown);
  const warned = new Set<string>();
  try {
    // The first change comes at once, with a token that is older than the following read.
    for await (const { token } of placement.changes({
      in_tree,
      parts: ['provider', 'inventories', 'usages'],
      signal,
    })) {
      // In a group of changes only the last one has a new token.
      if (token === read) continue;
      read = token;
      const [left, tree] = await Promise.all([holdingsIn(placement, in_tree), readTree(placement, in_tree)]);
      if (left.length === 0) return true;
      const text = holdersLine(left);
      if (text !== told) printError(text);
      told = text;
      for (const provider of tree) {
        const isOpen = Object.values(provider.inventories).some(({ reserved, total }) => reserved < total);
        if (!isOpen || warned.has(provider.uuid)) continue;
        warned.add(provider.uuid);
        printError(
          `Warning: ${provider.name} accepts claims again, since another program has written its inventories. Drain it once more.`,
        );
      }
    }
  } catch (error) {
    if (signal?.aborted && error === signal.reason) return false;
    throw error;
  }
  return false;
}
