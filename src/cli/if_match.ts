import { Option } from 'commander';
import { isPreconditionFailed, retryConflicts } from '../client/index.ts';

/** The option `--if-match`. */
export type IfMatchOption = { readonly ifMatch?: string };

/** For commands that change a resource which another command shows with an entity tag. */
export const ifMatchOption = (shownBy: string): Option =>
  new Option('--if-match <etag>', `write only if this is its etag, as ${shownBy} --json prints it; from 2.1`);

/**
 * Reads and writes, and repeats both if another writer changed something in between. If the tag of `--if-match`
 * no longer matches, it does not repeat: the tag will not match again.
 */
export const retryUnlessChanged = <Result>(
  { ifMatch }: IfMatchOption,
  readAndWrite: () => Promise<Result>,
): Promise<Result> =>
  retryConflicts(() =>
    readAndWrite().catch((error: unknown) => {
      throw ifMatch !== undefined && isPreconditionFailed(error) ? new Error(error.message, { cause: error }) : error;
    }),
  );
