/*
 * `placement apply` sets on each provider that it creates a trait with the name of the pool in its file. By this trait alone `--prune`
 * knows which providers it may delete.
 */

const prefix = 'CUSTOM_POOL_OF_FILE_';

/** The names that a pool may have. Capital letters and other characters could not be distinguished in a trait. */
export const poolPattern = /^[a-z0-9_]{1,200}$/;

/** The trait of the providers that files of this pool have created. */
export const markOfPool = (pool: string): string => prefix + pool.toUpperCase();

/** Whether a trait is the mark of a pool. */
export const isPoolMark = (trait: string): boolean => trait.startsWith(prefix);

/** The pool of a provider; undefined for a provider that no file has created. */
export const poolOf = ({ traits }: { readonly traits: readonly string[] }): string | undefined =>
  traits.find(isPoolMark)?.slice(prefix.length).toLowerCase();
