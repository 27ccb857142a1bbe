import { follow } from './following.ts';
import { isLasting } from './lasting.ts';
import { nameInMirror } from './mirror.ts';
import { Name } from './name.tsx';
import { Link, urlOf } from './route.tsx';
import { placement } from './session.ts';
import { createStore, useStore } from './store.ts';
import { shortUuid } from './text.ts';

/** The names of providers that were read, by UUID; null if there is no such provider, or this user may not read it. */
const names = createStore<ReadonlyMap<string, string | null>>(new Map());

const wanted = new Set<string>();
/** How long UUIDs are collected before one request reads their names, in milliseconds. */
const collectMs = 20;
/** The UUIDs are in the URL. */
const mostNamed = 500;

/** A link to a provider, with its name once that is known. */
export function ProviderLink({ uuid, name }: { readonly uuid: string; readonly name?: string | undefined }) {
  useStore(names);
  const text = name ?? nameOf(uuid);
  return (
    <Link to={urlOf('providers', uuid)}>
      {text === undefined ? <code>{shortUuid(uuid)}…</code> : <Name text={text} />}
    </Link>
  );
}

/** The name of a provider, if it is known. Otherwise the name is requested, and the store changes later. */
function nameOf(uuid: string): string | undefined {
  const known = nameInMirror(uuid) ?? names.get().get(uuid);
  if (known === undefined) want(uuid);
  return known ?? undefined;
}

function want(uuid: string): void {
  if (wanted.has(uuid)) return;
  wanted.add(uuid);
  if (wanted.size === 1) setTimeout(readNames, collectMs);
}

// A name that may have changed is read again. The name of a deleted provider stays, for lists of former allocations.
follow((change) => {
  if ('everything' in change) names.set(new Map());
  if ('parts' in change && change.parts.includes('provider') && names.get().has(change.resource_provider)) {
    want(change.resource_provider);
  }
});

async function readNames(): Promise<void> {
  const uuids = [...wanted].slice(0, mostNamed);
  const found = await placement.providerSummaries
    .page({ uuids, limit: mostNamed })
    .catch((error: unknown) => (isLasting(error) ? [] : undefined));
  for (const uuid of uuids) wanted.delete(uuid);
  // After an error that may pass, the names are requested when a link is shown again.
  if (found !== undefined) {
    const byUuid = new Map(found.map(({ uuid, name }) => [uuid, name]));
    const before = names.get();
    names.set(
      new Map([...before, ...uuids.map((uuid) => [uuid, byUuid.get(uuid) ?? before.get(uuid) ?? null] as const)]),
    );
  }
  if (wanted.size > 0) readNames();
}
