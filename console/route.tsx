import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useState } from 'preact/hooks';
import { isView, type View } from '../src/console/views.ts';
import { createStore, useStore } from './store.ts';

/** Where the console is: `/console/` of the service, whatever a proxy has before it. */
const home = new URL('.', import.meta.url);

/** The URL of the service. */
export const serviceUrl = new URL('..', home).href.replace(/\/$/, '');

/** What a URL shows: a view, mostly of one thing, and how. */
export type Route = { readonly view: View; readonly id: string | undefined; readonly query: URLSearchParams };

/** The text of a part of a path. An escape that is none stays as it is. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function read(): Route {
  const [name = '', id] = location.pathname.slice(home.pathname.length).split('/');
  const view = isView(name) ? name : 'fleet';
  return {
    view,
    id: id === undefined || id === '' ? undefined : decoded(id),
    query: new URLSearchParams(location.search),
  };
}

const route = createStore<Route>(read());
addEventListener('popstate', () => route.set(read()));

/** The route that the address bar shows. */
export const useRoute = (): Route => useStore(route);

/**
 * What a user may change of a value that the URL has. Where a link or the browser's back changes the URL, it is the URL's again. This ends
 * with the render: after the next paint it would undo what a key has changed meanwhile.
 */
export function useOfUrl<T extends object | string | undefined>(ofUrl: T): [T, (value: T) => void] {
  const [value, setValue] = useState(ofUrl);
  useLayoutEffect(() => setValue(ofUrl), [JSON.stringify(ofUrl)]);
  return [value, setValue];
}

type Query = Readonly<Record<string, string | undefined>> | URLSearchParams;

/** The URL of a view. Parameters that are undefined or empty are left out. */
export function urlOf(view: View, id?: string, query: Query = {}): string {
  const parameters =
    query instanceof URLSearchParams
      ? query
      : new URLSearchParams(Object.entries(query).flatMap(([name, value]) => (value ? [[name, value]] : [])));
  // Commas, colons and exclamation marks are frequent in queries, and need no escape there.
  const text = parameters.toString().replaceAll('%2C', ',').replaceAll('%3A', ':').replaceAll('%21', '!');
  const path = id === undefined ? view : `${view}/${encodeURIComponent(id)}`;
  return `${home.pathname}${path}${text === '' ? '' : `?${text}`}`;
}

/** The query of a URL with other values; an empty value removes a parameter. */
export function changed(query: URLSearchParams, values: Readonly<Record<string, string>>): URLSearchParams {
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(values)) {
    if (value === '') next.delete(name);
    else next.set(name, value);
  }
  return next;
}

/** Shows another view. With `replace` it replaces the present one in the history of the browser. */
export function navigate(url: string, how: 'push' | 'replace' = 'push'): void {
  if (how === 'replace') history.replaceState(null, '', url);
  else history.pushState(null, '', url);
  route.set(read());
  if (how === 'push') scrollTo(0, 0);
}

/** A link to a view. */
export function Link({
  to,
  class: className,
  current,
  label,
  children,
}: {
  readonly to: string;
  readonly class?: string | undefined;
  readonly current?: boolean | undefined;
  /** A description, if the text alone does not say what the link does. */
  readonly label?: string | undefined;
  readonly children: ComponentChildren;
}) {
  const follow = (event: MouseEvent) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return (
    <a href={to} class={className} aria-current={current ? 'page' : undefined} aria-label={label} onClick={follow}>
      {children}
    </a>
  );
}
