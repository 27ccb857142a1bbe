import { changed, Link, navigate, urlOf, useRoute } from './route.tsx';

/**
 * After what the page before begins, for each URL to which this tab has turned, whatever its order. The service knows only the next page.
 */
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
  const { view, id, query } = useRoute();
  const unsorted = (after: string) => urlOf(view, id, changed(query, { after, sort: '' }));
  const after = query.get('after') ?? '';
  const before = turnedFrom.get(unsorted(after));
  const previous = before === undefined ? first : urlOf(view, id, changed(query, { after: before }));
  const turn = () => {
    if (next === undefined) return;
    turnedFrom.set(unsorted(new URL(next, location.href).searchParams.get('after') ?? ''), after);
    navigate(next);
  };
  return (
    <nav class="pages" aria-label={`Pages of ${of}`}>
      <button type="button" disabled={first === undefined} onClick={() => previous !== undefined && navigate(previous)}>
        {first !== undefined && before === undefined ? 'First page' : 'Previous'}
      </button>
      <button type="button" disabled={next === undefined} onClick={turn}>
        Next
      </button>
    </nav>
  );
}

/** The text of a page after the last one. @param first the URL of the first page */
export function NoMore({ of, first }: { readonly of: string; readonly first: string }) {
  return (
    <>
      There are no more {of}. <Link to={first}>The first ones</Link>
    </>
  );
}
