import { namesSince } from '../../src/client/claim.ts';
import { optional } from '../../src/client/filters.ts';
import type { Holding, HoldingQuery } from '../../src/client/holdings.ts';
import { asking, pathOf } from '../../src/client/operation.ts';
import { placement } from '../session.ts';
import { uuidOf } from '../uuid.ts';
import type { HolderFilter } from './holder_filter.ts';

/** A page of what consumers hold. */
export type HoldingsPage = {
  readonly holdings: readonly Holding[];
  /** The UUID after which the next page begins; undefined on the last one. */
  readonly next: string | undefined;
  /** The UUID of the provider of the filter. */
  readonly provider: string | undefined;
};

const pageSize = 100;

/** Reads a page. @returns undefined if no provider has the name of the filter */
export async function readHoldings(filter: HolderFilter, signal: AbortSignal): Promise<HoldingsPage | undefined> {
  const found = await queryOf(filter, signal);
  if (found === undefined) return undefined;
  const query = Object.entries({ ...found.query, marker: filter.after || undefined, limit: pageSize }).flatMap(
    ([name, value]) => optional(name, value),
  );
  const operation = { method: 'GET', path: pathOf('holdings'), since: namesSince, query } as const;
  const { holdings, holdings_links: links = [] } = await asking(placement.call)<Answer>(operation, { signal });
  return { holdings, next: markerOf(links[0]?.href), provider: found.provider };
}

/** The most rows that one request reads. */
const largePage = 1_000;

/** Reads all holdings of the filter, page by page. @returns undefined if no provider has the name of the filter */
export async function readAllHoldings(
  filter: HolderFilter,
  signal: AbortSignal,
): Promise<AsyncIterable<readonly Holding[]> | undefined> {
  const found = await queryOf(filter, signal);
  return found === undefined ? undefined : pagesOf(found.query, signal);
}

async function* pagesOf(filter: HoldingQuery, signal: AbortSignal): AsyncGenerator<readonly Holding[], void> {
  for (let marker: string | undefined; ; ) {
    const page = await placement.holdings.page({ ...filter, limit: largePage, marker }, { signal });
    yield page;
    marker = page.at(-1)?.consumer;
    if (page.length < largePage) return;
  }
}

/** The query of a filter, and the UUID of its provider; undefined if no provider has the name of the filter. */
async function queryOf(filter: HolderFilter, signal: AbortSignal) {
  const provider = filter.provider === '' ? undefined : await findProvider(filter.provider, signal);
  if (filter.provider !== '' && provider === undefined) return undefined;
  const query = {
    project_id: filter.project || undefined,
    user_id: filter.user || undefined,
    resource_class: filter.class || undefined,
    [filter.in === 'tree' ? 'in_tree' : 'resource_provider']: provider,
  };
  return { provider, query };
}

type Answer = { readonly holdings: readonly Holding[]; readonly holdings_links?: readonly { readonly href: string }[] };

/** A page has all rows of its consumers, so only its link says whether there is another one. */
const markerOf = (href = ''): string | undefined =>
  new URLSearchParams(href.slice(href.indexOf('?') + 1)).get('marker') ?? undefined;

/** The UUID of the provider with a name. */
async function findProvider(text: string, signal: AbortSignal): Promise<string | undefined> {
  const uuid = uuidOf(text);
  if (uuid !== undefined) return uuid;
  const [found] = await placement.providers.list({ name: text }, { signal });
  return found?.uuid;
}
