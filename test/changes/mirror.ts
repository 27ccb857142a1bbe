import assert from 'node:assert/strict';
import { accepted, at, listAt, type Send } from '../support/requests.ts';

/** What a client knows of a provider, part by part. */
type Copy = Record<string, unknown>;

/** A copy of all providers that follows changes. */
export type Mirror = {
  /** Reads changes from a service, and the changed parts from another one. @returns how many changes were reported */
  follow(changes: Send, reads: Send): Promise<number>;
  /** Compares the copy with what a service shows. */
  check(send: Send): Promise<void>;
  /** How often everything was read, including the first time. */
  readonly reads: number;
};

/** Which providers a mirror follows: of a class, or of the tree that a provider is in. */
export type Narrowing = { readonly resource_class: string } | { readonly in_tree: string };

/** Reads everything, and from then on the changed parts. @param narrowing the parts that it follows; without it all parts */
export async function openMirror(first: Send, narrowing?: Narrowing): Promise<Mirror> {
  const filter = narrowing === undefined ? '' : `&${new URLSearchParams(narrowing)}`;
  const followed = (all: ReadonlyMap<string, Copy>) =>
    sorted(all).filter(([, copy]) => isFollowed(copy, all, narrowing));
  let copies = new Map<string, Copy>();
  let token = '';
  let reads = 0;
  const readAll = async (send: Send): Promise<void> => {
    const { headers, json } = accepted(await send('GET', '/provider_summaries?limit=10000'));
    token = headers.get('placement-changes-token') ?? '';
    copies = copiesOf(json);
    reads += 1;
  };
  const readSome = async (send: Send, uuids: readonly string[]): Promise<ReadonlyMap<string, Copy>> =>
    uuids.length === 0
      ? new Map()
      : copiesOf(accepted(await send('GET', `/provider_summaries?limit=10000&uuid=in:${uuids.join()}`)).json);
  await readAll(first);
  return {
    get reads() {
      return reads;
    },
    follow: async (changes, read) => {
      const answer = await changes('GET', `/changes?since=${token}${filter}`);
      if (answer.status === 410) {
        await readAll(read);
        return 1;
      }
      const reported = listAt(accepted(answer).json, 'changes');
      const changed = reported.flatMap((each) => {
        const uuid = at(each, 'resource_provider');
        return typeof uuid === 'string'
          ? [{ uuid, parts: listAt(each, 'parts'), isDeleted: at(each, 'deleted') === true }]
          : [];
      });
      const seen = await readSome(
        read,
        changed.filter(({ isDeleted }) => !isDeleted).map(({ uuid }) => uuid),
      );
      for (const { uuid, parts, isDeleted } of changed) {
        const present = seen.get(uuid);
        if (isDeleted || present === undefined) {
          copies.delete(uuid); // the deletion is reported later
          continue;
        }
        const copy = copies.get(uuid) ?? {};
        copies.set(uuid, copy);
        for (const part of parts) copy[String(part)] = present[String(part)];
      }
      token = String(at(answer.json, 'next'));
      return reported.length;
    },
    check: async (send) => {
      const present = copiesOf(accepted(await send('GET', '/provider_summaries?limit=10000')).json);
      assert.deepEqual(followed(copies), followed(present));
    },
  };
}

function isFollowed(copy: Copy, all: ReadonlyMap<string, Copy>, narrowing: Narrowing | undefined): boolean {
  if (narrowing === undefined) return true;
  if ('resource_class' in narrowing) return at(copy.inventories, narrowing.resource_class) !== undefined;
  const rootOf = (each: Copy | undefined) => (Array.isArray(each?.provider) ? each.provider[2] : undefined);
  return rootOf(copy) !== undefined && rootOf(copy) === rootOf(all.get(narrowing.in_tree));
}

function copiesOf(json: unknown): Map<string, Copy> {
  return new Map(
    listAt(json, 'provider_summaries').map((summary) => {
      const get = (name: string) => at(summary, name);
      const provider = [get('name'), get('parent_provider_uuid'), get('root_provider_uuid')];
      const [inventories, usages, traits, aggregates] = ['inventories', 'usages', 'traits', 'aggregates'].map(get);
      return [String(get('uuid')), { provider, inventories, usages, traits, aggregates }];
    }),
  );
}

const sorted = (copies: ReadonlyMap<string, Copy>) => [...copies].sort(([a], [b]) => (a < b ? -1 : 1));
