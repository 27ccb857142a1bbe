/** So many sentences of a kind are worth reading, and making all of 100,000 would stop everything else. */
const shown = 100;

/**
 * A sentence for each of the first items, and one for all others.
 *
 * @param sentence is called for the first 100 items only.
 * @param summary the sentence for the others, by their number.
 */
export function firstOf<T>(
  items: readonly T[],
  sentence: (item: T) => string,
  summary: (others: number) => string,
): readonly string[] {
  const sentences = items.slice(0, shown).map(sentence);
  return items.length > shown ? [...sentences, summary(items.length - shown)] : sentences;
}
