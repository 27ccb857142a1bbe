import { instead } from '../client/errors.ts';
import { forEach } from '../client/for_each.ts';
import { isNotFound, type Placed, type Placement, type Provider } from '../client/index.ts';
import { isUuidLike, normalUuid } from '../placement/uuid.ts';
import { CommandFailure } from './exit_codes.ts';

/** The argument of commands that names a provider. */
export const providerArgument = ['<provider>', 'its name or UUID'] as const;

/** Finds a provider by its name or UUID. @throws CommandFailure with a hint if there is none */
export async function findProvider(placement: Placement, nameOrUuid: string): Promise<Provider> {
  const found = await lookUp(placement, nameOrUuid);
  if (found !== undefined) return found;
  throw new CommandFailure(
    'wrongInput',
    `There is no provider "${nameOrUuid}", by name or UUID. "placement provider list" shows those there are.`,
  );
}

/** The UUID of a provider that exists, or existed: only by its UUID can one be named that was deleted. */
export async function findUuid(placement: Placement, nameOrUuid: string): Promise<string> {
  const found = await lookUp(placement, nameOrUuid);
  if (found !== undefined) return found.uuid;
  if (isUuidLike(nameOrUuid)) return normalUuid(nameOrUuid);
  throw new CommandFailure(
    'wrongInput',
    `There is no provider "${nameOrUuid}" now. One that was deleted is known by its UUID, which "placement usage records --json" prints.`,
  );
}

async function lookUp({ providers }: Placement, nameOrUuid: string): Promise<Provider | undefined> {
  const absent = instead(undefined, isNotFound);
  const byUuid = isUuidLike(nameOrUuid) ? await providers.show(normalUuid(nameOrUuid)).catch(absent) : undefined;
  const [found] = byUuid !== undefined || nameOrUuid === '' ? [byUuid] : await providers.list({ name: nameOrUuid });
  return found;
}

/** The UUID of the provider that an option names, if it names one. @throws CommandFailure as `findProvider` */
export const uuidIfNamed = async (placement: Placement, nameOrUuid: string | undefined): Promise<string | undefined> =>
  nameOrUuid === undefined ? undefined : (await findProvider(placement, nameOrUuid)).uuid;

/** The names of the providers in answers about claims. From 2.7 on the answers contain the names: a member may not list providers. */
export async function namesOfHeld(
  placement: Placement,
  held: readonly Pick<Placed, 'allocations' | 'resource_providers'>[],
): Promise<(uuid: string) => string> {
  const named = held.flatMap(({ resource_providers = {} }) => Object.entries(resource_providers));
  const names = new Map(named.map(([uuid, { name }]) => [uuid, name]));
  const uuids = held.flatMap(({ allocations }) => Object.keys(allocations));
  if (uuids.some((uuid) => !names.has(uuid))) return namesOf(placement, uuids);
  return (uuid) => names.get(uuid) ?? uuid;
}

/**
 * Maps the UUIDs of providers to their names. If a provider has been deleted in between, its UUID is used as the name.
 */
export async function namesOf(placement: Placement, uuids: Iterable<string>): Promise<(uuid: string) => string> {
  const unique = [...new Set(uuids)];
  const names = new Map<string, string>();
  await forEach(unique, async (uuid) => {
    const [provider] = await placement.providers.list({ uuid });
    if (provider !== undefined) names.set(uuid, provider.name);
  });
  return (uuid) => names.get(uuid) ?? uuid;
}
