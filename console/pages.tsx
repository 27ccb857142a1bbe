import { navigate } from './route.tsx';

/** The URL of the page before, for each URL to which this tab has turned. The service knows only the next page. */
const turnedFrom = new Map<string, string>();

/** Buttons for the pages of a list, each of which has a URL. */
export function Pages({
  of,
  first,
  next,
}: {
  /** What the list has, for screen readers. */
  readonly of: string;
  /** The URL of the first page; undefined on this page. */
  readonly first: string | undefined;
  /** The URL of the next page; undefined on the last one. */
  readonly next: string | undefined;
}) {
  const here = location.pathname + location.search;
  const previous = turnedFrom.get(here);
  const turn = () => {
    if (next === undefined) return;
    turnedFrom.set(next, here);
    navigate(next);
  };
  return (
    <nav class="pages" aria-label={`Pages of ${of}`}>
      {first !== undefined && previous === undefined ? (
        <button type="button" onClick={() => navigate(first)}>
          First page
        </button>
      ) : (
        <button type="button" disabled={first === undefined} onClick={() => navigate(previous ?? here)}>
          Previous
        </button>
      )}
      <button type="button" disabled={next === undefined} onClick={turn}>
        Next
      </button>
    </nav>
  );
}
