/** A page of a list. */
export type Page = {
  /** The largest number of items. */
  readonly limit?: number | undefined;
  /** The page begins after this UUID, this project or this number, which need not exist any more. */
  readonly marker?: string | undefined;
};

/** What an item is known by, which is the marker behind it. */
type Marked =
  | { readonly uuid: string }
  | { readonly id: string }
  | { readonly number: number }
  | { readonly consumer: string }
  | { readonly project_id: string };

/** How many items a page has, except for the last one; it is also the default of the service. */
const limit = 1000;

/** The items of all pages. A page is requested after all items before it were taken. */
export async function* allPages<Item extends Marked>(
  page: (asked: Page & { readonly limit: number }) => Promise<readonly Item[]>,
): AsyncGenerator<Item, void> {
  for (let marker: string | undefined; ; ) {
    const items = await page({ limit, marker });
    yield* items;
    const last = items.at(-1);
    marker = last && markerOf(last);
    if (items.length < limit) return;
  }
}

function markerOf(item: Marked): string | undefined {
  if ('uuid' in item) return item.uuid;
  if ('id' in item) return item.id;
  if ('number' in item) return String(item.number);
  if ('consumer' in item) return item.consumer;
  return item.project_id;
}
