import type { Command, Option } from 'commander';

/**
 * Refuses options with one value that are given twice, for a command and its subcommands. Otherwise the last value
 * would win without a message.
 */
export function refuseGivenTwice(command: Command): void {
  for (const option of command.options.filter(hasOneValue)) {
    let isGiven = false;
    command.on(`option:${option.name()}`, () => {
      if (isGiven) command.error(`error: option '${option.flags}' is given twice. Give it once.`);
      isGiven = true;
    });
  }
  for (const each of command.commands) refuseGivenTwice(each);
}

/** An option that may be repeated has a function that collects its values, and no default value. */
const hasOneValue = ({ required, parseArg, argChoices, defaultValue }: Option): boolean =>
  required && (parseArg === undefined || argChoices !== undefined || defaultValue !== undefined);
