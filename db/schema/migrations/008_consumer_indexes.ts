/**
 * Does nothing any more. It built indexes of the users and the types of consumers, which made every claim dearer; migration 012 drops
 * them. It stays, since databases have run it.
 */
export const up = async (): Promise<void> => {};
