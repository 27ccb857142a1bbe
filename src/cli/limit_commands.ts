import { type Command, InvalidArgumentError } from 'commander';
import { type DefaultLimits, type Placement, type ProjectLimits, retryConflicts } from '../client/index.ts';
import { maxInteger } from '../placement/inventory.ts';
import { printError } from '../text/print.ts';
import { nearName, unnumbered } from '../text/strings.ts';
import { collect, isWhole } from './amounts.ts';
import { shellOf } from './shell.ts';
import { shellWord } from './shell_word.ts';
import type { TextTable } from './table.ts';

/** Values by class or type; null lifts the default. */
type Values = { readonly [name: string]: number | null };

type SetOptions = {
  readonly consumers?: Values;
  readonly remove?: readonly string[];
  readonly default?: true;
};
type DefaultOption = { readonly default?: true };

const defaultOption = ['--default', 'the defaults, for projects without values of their own'] as const;

/** Adds the commands of `placement limit`. */
export function addLimitCommands(program: Command): void {
  const limit = program.command('limit').description('how much projects may have; from 2.7');
  limit
    .command('list')
    .description('list the projects with values of their own')
    .action(async (_options: object, command: Command) => {
      const { placement, print } = shellOf(command);
      const limits = await Array.fromAsync(placement.limits.list());
      print(limits, () => limitTable(limits));
    });
  limit
    .command('show')
    .description('show the limits of a project, and what it uses of them')
    .argument('[project]', 'the project')
    .option(...defaultOption)
    .action(async (project: string | undefined, { default: isDefault }: DefaultOption, command: Command) => {
      const { placement, print } = shellOf(command);
      if (isDefault) {
        const limits = await placement.limits.showDefaults();
        print(limits, () => defaultTable(limits));
      } else {
        const limits = await placement.limits.show(given(command, project));
        print(limits, () => limitTable([limits]));
      }
    });
  limit
    .command('set')
    .description('set limits of a project, or defaults; others stay as they are')
    .usage('[options] [project] [CLASS=NUMBER...]')
    .argument('[words...]', 'the project, unless --default is there, and CLASS=NUMBER; CLASS=none lifts a default')
    .addHelpText('after', '\nExample: placement limit set vision PGPU=12 --consumers JOB=10')
    .option(
      '--consumers <type=number>',
      'how many consumers of a type may have something; all for any type',
      collectTypes,
    )
    .option('--remove <name>', 'a class or type that is to have no value; repeatable', collect)
    .option(...defaultOption)
    .action(async (words: readonly string[], options: SetOptions, command: Command) => {
      const { placement, print } = shellOf(command, [options.default ? defaultColumns : limitColumns]);
      const [project, ...amounts] = options.default
        ? [undefined, ...words]
        : [given(command, words[0]), ...words.slice(1)];
      const change = { resources: resourcesOf(command, amounts), consumers: options.consumers ?? {} };
      const removed = options.remove ?? [];
      const count = Object.keys(change.resources).length + Object.keys(change.consumers).length + removed.length;
      if (count === 0) command.error('error: nothing to set. Name a class, as PGPU=20, --consumers or --remove.');
      if (project === undefined) {
        const limits = await retryConflicts(async () => {
          const { resources, consumers, generation } = await placement.limits.showDefaults();
          return placement.limits.setDefaults({
            resources: numbers(command, changed(resources, change.resources, removed)),
            consumers: numbers(command, changed(consumers, change.consumers, removed)),
            generation,
          });
        });
        print(limits, () => defaultTable(limits));
        return;
      }
      let isNew = false;
      const limits = await retryConflicts(async () => {
        const { resources, consumers, generation } = await placement.limits.show(project);
        isNew = generation === null;
        return placement.limits.set(project, {
          resources: changed(resources, change.resources, removed),
          consumers: changed(consumers, change.consumers, removed),
          generation,
        });
      });
      print(limits, () => limitTable([limits]));
      // The limit is set. If the other limits cannot be read, they are not printed.
      const near = isNew ? await nearProject(placement, project).catch(() => undefined) : undefined;
      if (near !== undefined) {
        printError(
          `Project ${project} has no consumers. Is it ${near}? "placement limit delete ${shellWord(project)}" takes this back.`,
        );
      }
    });
  limit
    .command('delete')
    .description('delete the values of a project; then the defaults hold')
    .argument('[project]', 'the project')
    .option(...defaultOption)
    .action(async (project: string | undefined, { default: isDefault }: DefaultOption, command: Command) => {
      const { placement, print } = shellOf(command, []);
      if (isDefault) {
        await placement.limits.deleteDefaults();
        print({}, () => 'The default limits are deleted.');
        return;
      }
      const project_id = given(command, project);
      await placement.limits.delete(project_id);
      print({ project_id }, () => `The limits of project ${project_id} are deleted; the defaults hold.`);
    });
}

/** For a project without consumers, one with consumers or limits whose name is nearly the same. A new team may have a limit first. */
async function nearProject(placement: Placement, project: string): Promise<string | undefined> {
  if ((await placement.consumers.page({ project_id: project, limit: 1 })).length > 0) return undefined;
  const others = [
    ...(await placement.consumers.page({ limit: 1000 })),
    ...(await Array.fromAsync(placement.limits.list())),
  ].map(({ project_id }) => project_id);
  return nearName(
    project,
    others.filter((other) => unnumbered(other) !== unnumbered(project)),
  );
}

/** The project of a command, which needs one. */
function given(command: Command, project: string | undefined): string {
  if (project === undefined || project.includes('=')) command.error('error: name a project, or --default.');
  return project;
}

function readValue(text: string, pattern: RegExp, example: string): readonly [name: string, value: number | null] {
  const [, name = '', value = ''] = /^([^=]*)=(.*)$/.exec(text) ?? [];
  if (!pattern.test(name) || !(value === 'none' || isWhole(value, 0))) {
    const form = `Write it as NAME=NUMBER, up to ${maxInteger}, such as ${example}, or NAME=none to lift a default`;
    throw new InvalidArgumentError(`${form}. Got: ${text}`);
  }
  return [name, value === 'none' ? null : Number(value)];
}

function collectTypes(text: string, before: Values = {}): Values {
  const [name, value] = readValue(text, /^([A-Z0-9_]+|all|unknown)$/, 'JOB=10 or all=10');
  if (Object.hasOwn(before, name)) throw new InvalidArgumentError(`${name} is given twice. Give each type once.`);
  return { ...before, [name]: value };
}

function resourcesOf(command: Command, words: readonly string[]): Values {
  const values: Record<string, number | null> = {};
  for (const word of words) {
    try {
      const [name, value] = readValue(word, /^[A-Z0-9_]+$/, 'PGPU=20');
      if (Object.hasOwn(values, name)) command.error(`error: ${name} is given twice. Give each class once.`);
      values[name] = value;
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error;
      command.error(`error: ${error.message}`);
    }
  }
  return values;
}

/** The values with a change, and without the removed ones. */
const changed = <Value>(
  values: { readonly [name: string]: Value },
  change: Values,
  removed: readonly string[],
): { readonly [name: string]: Value | number | null } =>
  Object.fromEntries(Object.entries({ ...values, ...change }).filter(([name]) => !removed.includes(name)));

/** Defaults, of which none can be lifted. */
const numbers = (command: Command, values: Values): { readonly [name: string]: number } =>
  Object.fromEntries(
    Object.entries(values).map(([name, value]) => {
      if (value === null) command.error(`error: ${name}=none lifts a default of a project. Use --remove ${name}.`);
      return [name, value];
    }),
  );

const limitColumns = ['project', 'limit of', 'used', 'limit', 'from'];
const defaultColumns = ['limit of', 'limit'];

const limitTable = (limits: readonly ProjectLimits[]): TextTable => ({
  head: limitColumns,
  rows: limits.flatMap(({ project_id: project, resources, consumers }) =>
    [
      ...Object.entries(resources),
      ...Object.entries(consumers).map(([type, value]) => [`consumers ${type}`, value] as const),
    ].map(([name, { used, limit, from }]) => [project, name, used, limit ?? 'none', from]),
  ),
});

const defaultTable = ({ resources, consumers }: DefaultLimits): TextTable => ({
  head: defaultColumns,
  rows: [
    ...Object.entries(resources),
    ...Object.entries(consumers).map(([type, value]) => [`consumers ${type}`, value] as const),
  ],
});
