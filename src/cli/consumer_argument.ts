import { InvalidArgumentError } from 'commander';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';

/**
 * Checks that a consumer is a UUID, because the server finds nothing otherwise. The server stores UUIDs in the usual
 * form.
 */
export function readConsumer(text: string): string {
  if (isUuidLike(text)) return normalUuid(text);
  throw new InvalidArgumentError(
    'A consumer is known by its UUID. The consumer of an instance has the UUID of the instance.',
  );
}

/** The argument of commands about one consumer. */
export const consumerArgument = ['<consumer>', 'its UUID', readConsumer] as const;
