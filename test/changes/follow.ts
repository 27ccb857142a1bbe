import assert from 'node:assert/strict';
import { accepted, at, type Send } from '../support/requests.ts';

/** Reads the changes since the last call. */
export type Feed = (() => Promise<unknown>) & {
  /** The token that the next call sends. */
  token(): string;
  /** Checks that the token can no longer be followed. */
  isExpired(): Promise<void>;
};

/** Follows changes from now on. @param parts the value of the parameter; default: all */
export async function followFrom(send: Send, parts?: string): Promise<Feed> {
  const read = async (since: string) => send('GET', `/changes?${since}${parts === undefined ? '' : `&parts=${parts}`}`);
  let token = String(at(accepted(await read('')).json, 'next'));
  const feed = async () => {
    const { json } = accepted(await read(`since=${token}`));
    token = String(at(json, 'next'));
    return at(json, 'changes');
  };
  return Object.assign(feed, {
    token: () => token,
    isExpired: async () => {
      const { status, json } = await read(`since=${token}`);
      assert.deepEqual([status, at(json, 'errors', 0, 'code')], [410, 'placement.changes_expired']);
    },
  });
}
