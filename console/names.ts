import { mirror } from './mirror.ts';
import { placement } from './session.ts';
import { createStore } from './store.ts';

/** The names of providers that were read, by UUID; null if there is no such provider, or this user may not read it. */
export const names = createStore<ReadonlyMap<string, string | null>>(new Map());

const wanted = new Set<string>();
/** How long UUIDs are collected before one request reads their names, in milliseconds. */
const collectMs = 20;
/** The UUIDs are in the URL. */
const mostNamed = 500;

/** The name of a provider, if it is known. Otherwise the name is requested, and the store changes later. */
export function nameOf(uuid: string): string | undefined {
  const known = mirror.get().providers.get(uuid)?.name ?? names.get().get(uuid);
  if (known === undefined && !wanted.has(uuid)) {
    wanted.add(uuid);
    if (wanted.size === 1) setTimeout(read, collectMs);
  }
  return known ?? undefined;
}

async function read(): Promise<void> {
  const uuids = [...wanted].slice(0, mostNamed);
  const found = await placement.providerSummaries.page({ uuids, limit: mostNamed }).catch(() => []);
  const byUuid = new Map(found.map(({ uuid, name }) => [uuid, name]));
  for (const uuid of uuids) wanted.delete(uuid);
  names.set(new Map([...names.get(), ...uuids.map((uuid) => [uuid, byUuid.get(uuid) ?? null] as const)]));
  if (wanted.size > 0) read();
}
