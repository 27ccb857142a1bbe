/** A page of a list. */
export type Page = {
  /** The largest number of items. */
  readonly limit?: number | undefined;
  /** The page begins after this UUID, which need not exist any more. */
  readonly marker?: string | undefined;
};

/** The items of all pages. A page is requested after all items before it were taken. @param limit the size of a page */
export async function* allPages<Item extends { readonly uuid: string } | { readonly id: string }>(
  page: (asked: Page) => Promise<readonly Item[]>,
  limit: number,
): AsyncGenerator<Item, void> {
  for (let marker: string | undefined; ; ) {
    const items = await page({ limit, marker });
    yield* items;
    const last = items.at(-1);
    marker = last && ('uuid' in last ? last.uuid : last.id);
    if (items.length < limit) return;
  }
}
