import { uuidFrom } from './consumer_uuid.ts';

/** The namespace of providers whose UUID is derived from their name. */
export const providerNamespace = '97eafd10-044c-4bd1-84d9-1245179ca4f6';

/** The namespace of aggregates that have a name. */
export const aggregateNamespace = '8071013f-f4b4-468e-82c1-4a91f7d62644';

/**
 * The UUID of a provider that has no other one: the UUIDv5 of its name in `providerNamespace`. In Python:
 * `uuid5(UUID(providerNamespace), name)`. `placement apply` uses it for the providers that it creates.
 */
export const providerUuid = (name: string): string => uuidFrom(providerNamespace, name);

/**
 * The UUID of an aggregate that has a name, such as a rack: the UUIDv5 of the name in `aggregateNamespace`. The service knows aggregates
 * by their UUIDs only.
 */
export const aggregateUuid = (name: string): string => uuidFrom(aggregateNamespace, name);
