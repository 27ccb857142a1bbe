import type { Action } from './action.ts';
import { noteOf, notesOf } from './consumer_generations.ts';
import type { Reply } from './history.ts';

/** What clients of an arena have seen last. It may be outdated. */
export type Notes = {
  /** Of providers, and of consumers by the names of their notes; null for a consumer that was not there. */
  readonly generations: Map<string, number | null>;
  /** All generations of consumers that were seen, by the names of their notes. */
  readonly seen: Map<string, Set<number>>;
  /** By path. */
  readonly tags: Map<string, string>;
  /** The parents of providers. */
  readonly parents: Map<string, string | null>;
  /** The providers of which consumers have something. */
  readonly holdings: Map<string, readonly string[]>;
};

export const noNotes = (): Notes => ({
  generations: new Map(),
  seen: new Map(),
  tags: new Map(),
  parents: new Map(),
  holdings: new Map(),
});

type Body = Readonly<Record<string, unknown>>;

/** Notes what an answer shows. */
export function takeNotes(notes: Notes, { method, path, microversion, body: sent }: Action, reply: Reply): void {
  const { tags } = notes;
  const [, kind = '', uuid = ''] = path.split(/[/?]/);
  if (reply.etag !== undefined) tags.set(path, reply.etag);
  else if (method !== 'GET') tags.delete(path);
  const body = (reply.body ?? {}) as Body;
  if (uuid === '') {
    // Consumers that were written, a provider that was made, or providers that are listed.
    for (const [each, of] of [...Object.entries(body), ['', body] as const].flatMap(asListed)) {
      takeShown(notes, typeof of.uuid === 'string' ? of.uuid : each, microversion, of);
    }
    if (reply.status === 204) for (const each of Object.keys((sent ?? {}) as Body)) forget(notes, each);
    return;
  }
  takeShown(notes, uuid, microversion, body);
  if (generationIn(body) !== undefined) return;
  if (kind === 'allocations' && (reply.status === 404 || method === 'DELETE' || method === 'GET')) {
    for (const note of notesOf(uuid)) notes.generations.set(note, null);
    notes.holdings.delete(uuid);
  } else if (reply.status === 204 || (reply.status === 404 && method === 'GET')) {
    forget(notes, uuid);
    if (kind === 'allocations') takeHoldings(notes, uuid, (sent ?? {}) as Body);
  }
}

/** A member of a body with its name; of a list each item. */
const asListed = ([name, value]: readonly [name: string, value: unknown]): readonly (readonly [string, Body])[] =>
  (Array.isArray(value) ? value : [value]).map((item) => [
    name,
    (typeof item === 'object' && item !== null ? item : {}) as Body,
  ]);

/** Forgets the generation of a provider or a consumer, which is another one by now. */
function forget({ generations }: Notes, uuid: string): void {
  for (const note of [uuid, ...notesOf(uuid)]) generations.delete(note);
}

function takeShown(notes: Notes, uuid: string, microversion: number, shown: Body): void {
  const generation = generationIn(shown);
  if (generation !== undefined) {
    const note = 'consumer_generation' in shown ? noteOf(uuid, microversion) : uuid;
    notes.generations.set(note, generation);
    if ('consumer_generation' in shown) notes.seen.set(note, new Set([...(notes.seen.get(note) ?? []), generation]));
  }
  const { parent_provider_uuid: parent } = shown;
  if (typeof parent === 'string' || parent === null) notes.parents.set(uuid, parent);
  if ('project_id' in shown) takeHoldings(notes, uuid, shown);
}

function takeHoldings({ holdings }: Notes, consumer: string, { allocations }: Body): void {
  if (typeof allocations === 'object' && allocations !== null) holdings.set(consumer, Object.keys(allocations));
}

function generationIn(body: Body): number | undefined {
  const shown = body.consumer_generation ?? body.resource_provider_generation ?? body.generation;
  return typeof shown === 'number' ? shown : undefined;
}
