import type { Command, Option } from 'commander';

/** Refuses options with one value that are given twice, of a command and those below it: the last would win without a word. */
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

/** What may be repeated has a function that collects, and nothing to begin with. */
const hasOneValue = ({ required, parseArg, argChoices, defaultValue }: Option): boolean =>
  required && (parseArg === undefined || argChoices !== undefined || defaultValue !== undefined);
