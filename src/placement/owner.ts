/** The project and the user that own a consumer. */
export type Owner = { readonly projectId: string; readonly userId: string };

/** The owner in a row of the database: null where there is no record, or the record has none. */
type StoredOwner = { readonly projectId: string | null; readonly userId: string | null };

/**
 * The owner of a consumer as answers and rules of the policy have it.
 *
 * @param incomplete the configured owner, which stands in for what is not stored: the online data migration gives old allocations to it
 */
export const ownerOr = (incomplete: Owner, { projectId, userId }: StoredOwner): Owner => ({
  projectId: projectId ?? incomplete.projectId,
  userId: userId ?? incomplete.userId,
});
