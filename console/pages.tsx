/** Buttons for the pages of a list. Without a function there is no such page. */
export function Pages({
  of,
  previous,
  next,
}: {
  /** What the list has, for screen readers. */
  readonly of: string;
  readonly previous: (() => void) | undefined;
  readonly next: (() => void) | undefined;
}) {
  return (
    <nav class="pages" aria-label={`Pages of ${of}`}>
      <button type="button" disabled={previous === undefined} onClick={previous}>
        Previous
      </button>
      <button type="button" disabled={next === undefined} onClick={next}>
        Next
      </button>
    </nav>
  );
}
