import { since } from './microversions.ts';

/*
 * A consumer as clients know it.
 */

/** The project and the user that own a consumer. */
export type Owner = { readonly projectId: string; readonly userId: string };

/**
 * The configured project and user of old allocations without a consumer record: the online data migration gives the
 * allocations to them.
 */
export const incompleteOwner = ({
  placement,
}: {
  readonly placement: Readonly<Record<'incompleteConsumerProjectId' | 'incompleteConsumerUserId', string>>;
}): Owner => ({ projectId: placement.incompleteConsumerProjectId, userId: placement.incompleteConsumerUserId });

/** The owner in a row of the database: null where there is no record, or the record has none. */
type StoredOwner = { readonly projectId: string | null; readonly userId: string | null };

/**
 * The owner of a consumer as answers and rules of the policy have it.
 *
 * @param incomplete the configured owner, which is used where none is stored: the online data migration stores it for old allocations
 */
export const ownerOr = (incomplete: Owner, { projectId, userId }: StoredOwner): Owner => ({
  projectId: projectId ?? incomplete.projectId,
  userId: userId ?? incomplete.userId,
});

/** The generation of a consumer in the database, and the generations of former consumers with its UUID. */
export type ConsumerGenerations = {
  /** The generation of its record; null if there is none. The record of a consumer that is created again begins at 1. */
  readonly generation: number | null;
  /** How many generations the former consumers with its UUID had together. */
  readonly formerGenerations: number;
};

/**
 * Whether a version raises the generation of a new consumer above the generations of deleted consumers with the same UUID. In versions
 * of OpenStack Placement each new consumer begins at generation 1.
 */
export const goesOn = (version: number): boolean => version >= since.entityTags;

/**
 * The generation by which clients know a consumer; null without a record.
 *
 * @param generationGoesOn whether it continues after the generations of former consumers with the same UUID, as `goesOn` says. Then a
 *   client that knows only a former consumer has another generation.
 */
export const shownGeneration = (
  { generation, formerGenerations }: ConsumerGenerations,
  generationGoesOn: boolean,
): number | null => (generation === null ? null : generationGoesOn ? generation + formerGenerations : generation);
