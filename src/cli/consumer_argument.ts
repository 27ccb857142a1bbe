import { type Command, InvalidArgumentError, Option } from 'commander';
import { instead, isForbidden, isTooOld } from '../client/errors.ts';
import { type Consumer, type ConsumerQuery, consumerUuid, isNotFound, type Placement } from '../client/index.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { readDuration } from './duration.ts';
import { CommandFailure } from './exit_codes.ts';
import { shellWord } from './shell_word.ts';

/** The argument of commands about one consumer. `readConsumer` reads it. */
export const consumerArgument = ['<consumer>', 'its UUID, or its name as PROJECT/NAME'] as const;

/** The argument of commands about one consumer that have `--project`. */
export const ownedConsumerArgument = [
  '<consumer>',
  'its UUID, or its name in the project: NAME or PROJECT/NAME',
] as const;

/** A consumer on the command line: by UUID, or by a name in a project. */
export type NamedConsumer = {
  readonly uuid: string;
  readonly project?: string;
  readonly name?: string;
  /** What else a text with several slashes may mean: `acme/vision/job-1` is `job-1` of `acme/vision`, or `vision/job-1` of `acme`. */
  readonly others?: readonly NamedConsumer[];
};

/**
 * Reads a consumer: a UUID in any usual form, PROJECT/NAME, or NAME in the project of the command. The UUID is derived from the name;
 * `foundConsumer` finds consumers that have another UUID. Claims also send the name.
 *
 * @param project from `--project`
 */
export function readConsumer(text: string, project: string | undefined, command: Command): NamedConsumer {
  if (isUuidLike(text)) return { uuid: normalUuid(text) };
  if (/^[0-9a-f-]{28,40}$/i.test(text)) {
    return command.error(`error: Consumer "${text}" is no UUID: a letter is missing or one too many.`);
  }
  const [first, ...others] = readings(text, project).filter(({ project: owner, name }) => owner !== '' && name !== '');
  if (first === undefined) {
    return command.error(
      `error: Consumer "${text}" is no UUID. Write a name together with its project, as PROJECT/NAME, such as ci/job-1.`,
    );
  }
  return { ...first, ...(others.length > 0 && { others }) };
}

/** All ways to read a text: the project may have slashes, and so may the name. With `--project` there is one way only. */
function readings(text: string, project: string | undefined): readonly Required<Omit<NamedConsumer, 'others'>>[] {
  const named = (owner: string, name: string) => ({ uuid: consumerUuid(owner, name), project: owner, name });
  if (project !== undefined && text.startsWith(`${project}/`)) return [named(project, text.slice(project.length + 1))];
  const slashes = [...text.matchAll(/\//g)].map(({ index }) => index);
  if (slashes.length === 0) return project === undefined ? [] : [named(project, text)];
  const ways = slashes.map((slash) => named(text.slice(0, slash), text.slice(slash + 1)));
  return project === undefined ? ways : ways.slice(0, 1);
}

const shownAtMost = 5;

/**
 * The consumer with a name: the one whose UUID is derived from the name, or else the only one of the project that the service knows
 * by this name. Where there is neither, the next way to read the text is tried; if none finds a consumer, the first way counts.
 *
 * @throws CommandFailure if several have the name
 */
export async function foundConsumer(placement: Placement, named: NamedConsumer): Promise<NamedConsumer> {
  const { others = [], ...first } = named;
  for (const reading of [first, ...others]) {
    const { uuid, project, name } = reading;
    if (name === undefined) break;
    const uuids = await uuidsOf(placement, { project_id: project, name });
    if (uuids.includes(uuid) || (others.length + uuids.length > 0 && (await exists(placement, uuid)))) return reading;
    if (uuids.length > 0) return onlyOne(reading, uuids);
  }
  return first;
}

/**
 * Chooses among consumers that all have the name; without any, the consumer as it was read.
 *
 * @throws CommandFailure if it could be several
 */
export function onlyOne(named: NamedConsumer, uuids: readonly string[]): NamedConsumer {
  const { uuid, project, name } = named;
  const [only = uuid, ...others] = uuids;
  if (others.length === 0) return { ...named, uuid: only };
  if (uuids.includes(uuid)) return named;
  const shown = uuids.slice(0, shownAtMost).join(', ');
  const more = uuids.length > shownAtMost ? ' and more' : '';
  throw new CommandFailure(
    'wrongInput',
    `Several consumers are called ${project}/${name}: ${shown}${more}. Give the UUID.`,
  );
}

/** Consumers that the service knows by a name. */
async function uuidsOf(placement: Placement, query: ConsumerQuery): Promise<readonly string[]> {
  const found = await listedOrNone(placement.consumers.page({ ...query, limit: shownAtMost + 1 }));
  return found.map(({ uuid }) => uuid);
}

/** What a list has; nothing where the service is too old for the list, or it is not for this user, such as that of another project. */
export const listedOrNone = <T>(list: Promise<readonly T[]>): Promise<readonly T[]> =>
  list.catch(instead([], (error) => isTooOld(error) || isForbidden(error)));

const exists = (placement: Placement, uuid: string): Promise<boolean> =>
  placement.consumers.show(uuid).then(() => true, instead(false, isNotFound));

/** A consumer as the service shows it. @throws CommandFailure that has the name by which it was looked for, if there is none */
export async function showConsumer(placement: Placement, { uuid, project, name }: NamedConsumer): Promise<Consumer> {
  try {
    return await placement.consumers.show(uuid);
  } catch (error) {
    if (name === undefined || !isNotFound(error)) throw error;
    throw new CommandFailure('wrongInput', `There is no consumer ${project}/${name}. Its UUID would be ${uuid}.`, {
      cause: error,
    });
  }
}

/**
 * Like `readConsumer`, for commands that set the project to which the consumer's usage is counted. Without `--project`, this
 * is the project of the name.
 */
export function readOwned(text: string, project: string | undefined, command: Command): NamedConsumer {
  const consumer = readConsumer(text, project, command);
  if (consumer.others !== undefined) {
    const projects = [consumer, ...consumer.others].map(({ project: owner = '' }) => shellWord(owner)).join(' or ');
    return command.error(
      `error: Consumer "${text}" has several slashes, so its project is ${projects}. Say which one by --project.`,
    );
  }
  if (consumer.project === undefined || project === undefined || consumer.project === project) return consumer;
  return command.error(
    `error: Consumer "${text}" is a name in project ${consumer.project}, and --project is ${project}. For a name with "/" in it ` +
      `write ${shellWord(`${project}/${text}`)}.`,
  );
}

/**
 * The option for the type of a consumer. The command itself refuses an invalid type, because the server would answer
 * with a regular expression.
 *
 * @param words other values that are allowed, such as `unknown` where the type selects consumers
 */
export const typeOption = (description: string, ...words: readonly string[]): Option =>
  new Option('--type <TYPE>', description).argParser((text) => {
    if (words.includes(text) || /^[A-Z0-9_]{1,255}$/.test(text)) return text;
    const meant = text.toUpperCase().replaceAll(/[^A-Z0-9_]+/g, '_');
    const suggestion = /[A-Z]/.test(meant) ? `, such as ${meant}` : '';
    throw new InvalidArgumentError(`The type of a consumer has capital letters, digits and _${suggestion}.`);
  });

/** The option for the term of a claim. */
export const expiresInOption = (): Option =>
  new Option(
    '--expires-in <time>',
    'the consumer is removed after this time, such as 8h, unless its term is renewed; from 2.6',
  ).argParser(readDuration);
