import { type Command, Option } from 'commander';
import type { Placement } from '../client/index.ts';
import { escapeControlsInJson, messageOf, print } from '../text/print.ts';
import { collect } from './amounts.ts';
import { type ConnectionFlags, openPlacement } from './connection.ts';
import { CommandFailure } from './exit_codes.ts';
import {
  type Cell,
  csv,
  drawn,
  drawnAll,
  namesOf,
  narrowed,
  type OutputFormat,
  objects,
  outputFormats,
  type Printed,
  type TextTable,
  values,
  withNames,
} from './table.ts';

type OutputFlags = {
  readonly format?: OutputFormat;
  readonly json?: true;
  readonly csv?: true;
  readonly column?: readonly string[];
};

/** The client and the output of a command. */
export type Shell = {
  readonly placement: Placement;
  readonly format: OutputFormat;
  /**
   * Prints a result: the value as JSON, or the sentences and tables for people. Of several tables CSV and values are of
   * the first, or of the first with the requested columns.
   *
   * @param json for values that JSON.stringify cannot write
   */
  print(value: unknown, printed: () => Printed, json?: () => string): void;
  /** Makes the function that prints one row after the other of a table that does not end: a line for people, or the cells. */
  printLines(head: readonly string[]): (value: object, cells: readonly Cell[], line: () => string) => void;
};

/** Adds the options for the format of a result. */
export const addOutputOptions = (program: Command): Command =>
  program
    .addOption(
      new Option('--format <format>', 'how the result is printed; csv and value have the table alone').choices(
        outputFormats,
      ),
    )
    .addOption(new Option('--json', 'the same as --format json').conflicts('format'))
    .addOption(new Option('--csv', 'the same as --format csv').conflicts(['format', 'json']))
    .option('-c, --column <column>', 'only this column of a table, or this field; may be repeated', collect);

/**
 * Makes client and output from the options, which may be before or after the command.
 *
 * @param columns the columns of each table that the command prints: for commands that write, so that a wrong `--column`
 *   is refused before
 */
export function shellOf(command: Command, columns?: readonly (readonly string[])[]): Shell {
  const { format = 'table', json, csv: isCsv, ...flags } = command.optsWithGlobals<ConnectionFlags & OutputFlags>();
  const { column: names } = flags;
  if (
    columns !== undefined &&
    names !== undefined &&
    !columns.some((all) => names.every((name) => all.includes(name)))
  ) {
    command.error(`error: ${withoutColumn(names, columns.flat())}`);
  }
  const asked = json ? 'json' : isCsv ? 'csv' : format;
  return {
    placement: connected(command, flags),
    format: asked,
    print: (value, printed, jsonOf = () => JSON.stringify(value, null, 2)) => {
      const text = asked === 'json' && names === undefined ? jsonOf() : textOf([printed()].flat(), asked, names);
      if (text !== '') print(asked === 'json' ? escapeControlsInJson(text) : text);
    },
    printLines: (head) => {
      let isFirst = true;
      return (value, cells, line) => {
        if (names === undefined && (asked === 'json' || asked === 'table')) {
          print(asked === 'json' ? escapeControlsInJson(JSON.stringify(value)) : line());
          return;
        }
        const row = { head, rows: [cells] };
        print(rowWriters[asked](names === undefined ? row : (narrowed(row, names) ?? row), isFirst));
        isFirst = false;
      };
    },
  };
}

function textOf(
  parts: readonly (string | TextTable)[],
  format: OutputFormat,
  names: readonly string[] | undefined,
): string {
  const tables = parts.filter((part) => typeof part !== 'string');
  if (format === 'table' && names === undefined) {
    return drawnAll(parts);
  }
  const named = tables.map(withNames);
  const chosen =
    names === undefined ? named[0] : named.map((one) => narrowed(one, names)).find((one) => one !== undefined);
  if (chosen !== undefined) return writers[format](chosen);
  if (names === undefined) return '';
  throw new CommandFailure('wrongUsage', withoutColumn(names, named.flatMap(namesOf)));
}

const writers: Readonly<Record<OutputFormat, (table: TextTable) => string>> = {
  table: drawn,
  json: (table) => JSON.stringify(objects(table), null, 2),
  csv,
  value: values,
};

/** A table with one row, which may not be the first one. */
const rowWriters: Readonly<Record<OutputFormat, (table: TextTable, isFirst: boolean) => string>> = {
  table: values,
  json: (table) => escapeControlsInJson(JSON.stringify(objects(table)).slice(1, -1)),
  // The names of the columns have no line feeds.
  csv: (table, isFirst) => (isFirst ? csv(table) : csv(table).slice(csv({ ...table, rows: [] }).length + 1)),
  value: values,
};

function withoutColumn(names: readonly string[], there: readonly string[]): string {
  if (there.length === 0) return `This prints no table with a column ${names[0]}. Leave out --column.`;
  const unknown = names.find((name) => !there.includes(name));
  const problem =
    unknown === undefined ? `No table has the columns ${names.join(', ')} together.` : `There is no column ${unknown}.`;
  return `${problem} Those there are: ${[...new Set(there)].join(', ')}.`;
}

/** If the options are not enough to reach the service, that is wrong usage. */
function connected(command: Command, flags: ConnectionFlags): Placement {
  try {
    return openPlacement(flags, process.env);
  } catch (error) {
    return command.error(`error: ${messageOf(error)}`);
  }
}
