import type { WholeProvider } from '../src/client/provider_summaries.ts';
import { follow, following } from './following.ts';
import { isLasting } from './lasting.ts';
import { placement } from './session.ts';
import { createStore } from './store.ts';

/** All providers, as this page knows them. */
export type Mirror = {
  readonly providers: ReadonlyMap<string, WholeProvider>;
  /** Grows with each change of the providers: the map stays the same object. */
  readonly version: number;
  readonly isComplete: boolean;
  /** The last attempt to read failed. */
  readonly error: unknown;
};

const providers = new Map<string, WholeProvider>();
let version = 0;

/** The mirror. It is empty until the first view uses it, and then follows the service. */
export const mirror = createStore<Mirror>({ providers, version, isComplete: false, error: undefined });

const show = (more: Partial<Mirror>) => mirror.set({ ...mirror.get(), ...more, version: ++version });

/**
 * The numbers of providers in the first and in each further page when all providers are read. The first page is small,
 * so that the view shows something soon.
 */
const pageSizes = [500, 10_000];
/** The largest number of changed providers that one request reads: their UUIDs are in its URL. */
const mostNamed = 500;
/** If more providers have changed, all providers are read again. */
const mostStale = 5_000;
/** The time for which changes are collected before they are read, in milliseconds; not where they fill a request already. */
const collectMs = 150;
/** After this time it is read again where reading has failed, in milliseconds. */
const retryMs = 3_000;

const stale = new Set<string>();
/** What was deleted since the request that runs was sent: its answer may still have it. */
const deletedSince = new Set<string>();
let isEverythingStale = true;
let isReading = false;
let timer: ReturnType<typeof setTimeout> | undefined;
let retry: ReturnType<typeof setTimeout> | undefined;

/** Begins to read and to follow; later calls do nothing. */
export function openMirror(): void {
  if (isOpen) return;
  isOpen = true;
  follow((change) => {
    if ('everything' in change) isEverythingStale = true;
    if ('resource_provider' in change) {
      if ('deleted' in change) {
        stale.delete(change.resource_provider);
        deletedSince.add(change.resource_provider);
        if (forget(change.resource_provider)) show({});
        return;
      }
      stale.add(change.resource_provider);
    }
    readSoon();
  });
  // The first change, `everything`, came before this view was opened, or changes cannot be followed.
  if (following.get().state !== 'starting') readSoon();
  following.subscribe(() => {
    if (following.get().state !== 'starting' && !mirror.get().isComplete) readSoon();
  });
}

let isOpen = false;

type ReplacedListener = (before: WholeProvider | undefined, after: WholeProvider) => void;

const replacedListeners = new Set<ReplacedListener>();

/** Calls back for each provider that was read after it had changed, with what it was before. */
export function onReplaced(listener: ReplacedListener): void {
  replacedListeners.add(listener);
}

/** The names of deleted providers, which lists of former allocations still show. */
const formerNames = new Map<string, string>();

/** The name of a provider, or the last name of a deleted one; undefined if the mirror never had it. */
export const nameInMirror = (uuid: string): string | undefined => providers.get(uuid)?.name ?? formerNames.get(uuid);

function forget(uuid: string): boolean {
  const before = providers.get(uuid);
  if (before !== undefined) formerNames.set(uuid, before.name);
  return providers.delete(uuid);
}

/** Reads everything again. */
export function readAgain(): void {
  isEverythingStale = true;
  readSoon();
}

function readSoon(): void {
  if (isReading || timer !== undefined) return;
  timer = setTimeout(
    () => {
      timer = undefined;
      read();
    },
    isEverythingStale || stale.size >= mostNamed ? 0 : collectMs,
  );
}

async function read(): Promise<void> {
  isReading = true;
  try {
    if (isEverythingStale || stale.size > mostStale) await readEverything();
    else await readStale();
    isReading = false;
    // What has changed meanwhile is collected as well, so that steady changes do not take the whole thread.
    if (isEverythingStale || stale.size > 0) readSoon();
  } catch (error) {
    isReading = false;
    show({ error });
    clearTimeout(retry);
    if (!isLasting(error)) retry = setTimeout(readSoon, retryMs);
  }
}

async function readEverything(): Promise<void> {
  stale.clear();
  isEverythingStale = false;
  deletedSince.clear();
  const seen = new Set<string>();
  let marker: string | undefined;
  try {
    for (let index = 0; ; index++) {
      const limit = pageSizes[Math.min(index, pageSizes.length - 1)] ?? 1_000;
      const page = await placement.providerSummaries.page({ limit, marker });
      for (const provider of page) {
        if (deletedSince.has(provider.uuid)) continue;
        seen.add(provider.uuid);
        providers.set(provider.uuid, provider);
      }
      if (page.length < limit) break;
      show({ error: undefined });
      marker = page.at(-1)?.uuid;
    }
  } catch (error) {
    isEverythingStale = true;
    throw error;
  }
  for (const uuid of providers.keys()) if (!seen.has(uuid)) forget(uuid);
  show({ isComplete: true, error: undefined });
}

async function readStale(): Promise<void> {
  const uuids = [...stale].slice(0, mostNamed);
  for (const uuid of uuids) stale.delete(uuid);
  deletedSince.clear();
  const read = await placement.providerSummaries.page({ uuids, limit: mostNamed }).catch((error: unknown) => {
    for (const uuid of uuids) if (!deletedSince.has(uuid)) stale.add(uuid);
    throw error;
  });
  const found = new Set(read.map(({ uuid }) => uuid));
  for (const uuid of uuids) if (!found.has(uuid)) forget(uuid);
  for (const provider of read) {
    if (deletedSince.has(provider.uuid)) continue;
    const before = providers.get(provider.uuid);
    providers.set(provider.uuid, provider);
    for (const listener of replacedListeners) listener(before, provider);
  }
  show({ error: undefined });
}
