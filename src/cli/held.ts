import type { Command } from 'commander';
import type { ConsumerAllocations, Placement } from '../client/index.ts';
import { pathOf } from '../client/operation.ts';
import type { NamedConsumer } from './consumer_argument.ts';

/** The allocations of a consumer, and the remaining seconds of its term; undefined for a consumer without a term. */
export type Held = ConsumerAllocations & { readonly secondsLeft: number | undefined };

/** The options of commands that write allocations. Values without an option stay as they are. */
export type OwnerOptions = {
  readonly project?: string;
  readonly user?: string;
  readonly type?: string;
  readonly expiresIn?: number;
};

/** Reads the allocations of a consumer. The rest of its term is by the clock of the service: the clock of this machine may be wrong. */
export async function readHeld(placement: Placement, consumer: string): Promise<Held> {
  const { body, headers } = await placement.call({ method: 'GET', path: pathOf('allocations', consumer) });
  const held = body as ConsumerAllocations; // as the API has it
  if (held.expires_at == null) return { ...held, secondsLeft: undefined };
  const nowMs = Date.parse(headers.get('date') ?? '') || Date.now();
  return { ...held, secondsLeft: Math.max(1, Math.ceil((Date.parse(held.expires_at) - nowMs) / 1000)) };
}

/** Whether a consumer has allocations. */
export const hasSomething = (held: Held | undefined): boolean =>
  held !== undefined && Object.keys(held.allocations).length > 0;

/** The fields of a claim in addition to its allocations. A claim without a term would remove the term of the consumer. */
export function ownerOf(
  held: Held | undefined,
  named: NamedConsumer | undefined,
  given: OwnerOptions,
  command: Command,
) {
  const project_id = given.project ?? held?.project_id ?? named?.project;
  if (project_id === undefined) {
    return command.error(
      'error: The consumer is new. Give the project that it is counted for, with --project, or as PROJECT/NAME.',
    );
  }
  // Consumers from before there were types have `unknown`, which no claim may set.
  const heldType = held?.consumer_type === 'unknown' ? undefined : held?.consumer_type;
  return {
    project_id,
    user_id: given.user ?? held?.user_id ?? project_id,
    consumer_generation: held?.consumer_generation ?? null,
    consumer_type: given.type ?? heldType ?? 'INSTANCE',
    expires_in: given.expiresIn ?? held?.secondsLeft,
    name: named?.name,
  };
}
