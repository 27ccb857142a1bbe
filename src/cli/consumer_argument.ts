import type { Command } from 'commander';
import { consumerUuid } from '../client/index.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';

/** The argument of commands about one consumer. `readConsumer` reads it. */
export const consumerArgument = ['<consumer>', 'its UUID, or its name as PROJECT/NAME'] as const;

/** The same for commands that have `--project`. */
export const ownedConsumerArgument = [
  '<consumer>',
  'its UUID, or its name in the project: NAME or PROJECT/NAME',
] as const;

/** A consumer on the command line: by UUID, or by a name in a project. */
export type NamedConsumer = { readonly uuid: string; readonly project?: string };

/**
 * Reads a consumer: a UUID in any usual form, PROJECT/NAME, or NAME in the project of the command. Only a UUID is sent to the service.
 *
 * @param project from `--project`
 */
export function readConsumer(text: string, project: string | undefined, command: Command): NamedConsumer {
  if (isUuidLike(text)) return { uuid: normalUuid(text) };
  if (/^[0-9a-f-]{28,40}$/i.test(text)) {
    return command.error(`error: Consumer "${text}" is no UUID: a letter is missing or one too many.`);
  }
  const [, owner = project, name = text] = /^([^/]*)\/(.*)$/s.exec(text) ?? [];
  if (!owner || !name) {
    return command.error(
      `error: Consumer "${text}" is no UUID. Write a name together with its project, as PROJECT/NAME, such as ci/job-1.`,
    );
  }
  return { uuid: consumerUuid(owner, name), project: owner };
}

/**
 * Like `readConsumer`, for commands that set the project to which the consumer's usage is counted. Without `--project`, this
 * is the project of the name.
 */
export function readOwned(text: string, project: string | undefined, command: Command): NamedConsumer {
  const consumer = readConsumer(text, project, command);
  if (consumer.project === undefined || project === undefined || consumer.project === project) return consumer;
  return command.error(
    `error: Consumer "${text}" is a name in project ${consumer.project}, and --project is ${project}. For a name with "/" in it ` +
      `write ${project}/${text}.`,
  );
}
