import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type { Named } from '../consumer_link.tsx';
import { useNamedAggregates } from '../fleet/use_trees.ts';
import { mirror, openMirror } from '../mirror.ts';
import { navigate, urlOf } from '../route.tsx';
import { placement } from '../session.ts';
import { useStore } from '../store.ts';
import { counted, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';
import { findAll, uuidBefore } from './find.ts';

/** How many of each kind are shown. */
const mostShown = 8;
/** Shorter texts are in too many UUIDs. */
const shortestUuidPart = 4;
/** How long nothing is typed before consumers are searched, in milliseconds: the service may have to read all their names. */
const pauseMs = 200;

/** Searches providers and aggregates by parts of names and UUIDs, and consumers by parts of their names or the beginning of their UUID. */
export function SearchDialog({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  useEffect(() => {
    openMirror();
    dialog.current?.showModal();
  }, []);
  const { providers, version, isComplete, error } = useStore(mirror);
  const aggregates = useNamedAggregates();
  const wanted = text.trim();
  const found = useMemo(
    () => ({
      providers: findAll(providers.values(), wanted),
      aggregates: findAll(aggregates, wanted),
    }),
    [wanted, version],
  );
  const typed = usePaused(wanted, pauseMs);
  const consumers = useLoaded(typed === '' ? undefined : typed, (signal) => findConsumers(typed, signal));
  const isSearching = typed !== wanted || consumers.isLoading;
  const sections = [
    {
      title: 'Providers',
      links: found.providers.slice(0, mostShown).map(({ uuid, name }) => linkOf('providers', uuid, name)),
    },
    {
      title: 'Aggregates',
      links: found.aggregates.slice(0, mostShown).map(({ uuid, name }) => linkOf('aggregates', uuid, name)),
    },
    {
      title: 'Consumers',
      links: (typed === wanted ? (consumers.value ?? []) : []).map((each) =>
        linkOf('consumers', each.uuid, each.name ?? each.uuid),
      ),
    },
  ].filter(({ links }) => links.length > 0);
  const go = (url: string | undefined) => {
    if (url === undefined) return;
    dialog.current?.close();
    navigate(url);
  };
  const follow = (event: MouseEvent, url: string) => {
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(url);
  };
  /** Where a list ends before all that was found. */
  const more: Readonly<Record<string, Rest | undefined>> = {
    Providers: moreOf(found.providers.length, 'provider', urlOf('providers', undefined, { name: wanted })),
    Aggregates: moreOf(found.aggregates.length, 'aggregate', urlOf('aggregates')),
    Consumers:
      (consumers.value?.length ?? 0) < mostShown
        ? undefined
        : { text: 'All consumers with this in their name', url: urlOf('consumers', undefined, { name: wanted }) },
  };
  const move = (event: KeyboardEvent) => {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const stops = [...(dialog.current?.querySelectorAll<HTMLElement>('input, section a') ?? [])];
    const here = stops.findIndex((each) => each.matches(':focus'));
    stops[Math.min(Math.max(here + step, 0), stops.length - 1)]?.focus();
  };
  return (
    <dialog ref={dialog} class="search" aria-labelledby="search-heading" onClose={close} onKeyDown={move}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          go(sections[0]?.links[0]?.url);
        }}
      >
        <h2 id="search-heading">Search</h2>
        <label>
          <span>Part of a name or UUID; Enter opens the first, arrow keys choose</span>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
      </form>
      {error === undefined ? null : <Trouble error={error} what="The list of providers" />}
      {consumers.error === undefined ? null : <Trouble error={consumers.error} what="The list of consumers" />}
      <p class="faint" role="status">
        {wanted === ''
          ? 'Consumers are found by a part of their name, or by the beginning of their UUID.'
          : sections.length > 0
            ? ''
            : isComplete && !isSearching
              ? 'Nothing has this in its name or UUID.'
              : error === undefined
                ? 'Reading…'
                : ''}
      </p>
      {sections.map(({ title, links }) => (
        <section key={title}>
          <h3>{title}</h3>
          <ul class="found">
            {links.map(({ url, name, uuid }) => (
              <li key={uuid}>
                <a href={url} onClick={(event) => follow(event, url)}>
                  <bdi>{name}</bdi> {name.includes(uuid) ? null : <code class="faint">{uuid}</code>}
                </a>
              </li>
            ))}
          </ul>
          <More more={more[title]} follow={follow} />
        </section>
      ))}
      <button type="button" onClick={() => dialog.current?.close()}>
        Close
      </button>
    </dialog>
  );
}

const linkOf = (view: 'providers' | 'aggregates' | 'consumers', uuid: string, name: string) => ({
  url: urlOf(view, uuid),
  uuid,
  name: visible(name),
});

type Rest = { readonly text: string; readonly url: string };

/** The link to all that was found, where there is more than is shown. */
const moreOf = (count: number, one: string, url: string): Rest | undefined =>
  count <= mostShown ? undefined : { text: `The first ${mostShown} of ${counted(count, one)}: all`, url };

function More({
  more,
  follow,
}: {
  readonly more: Rest | undefined;
  readonly follow: (event: MouseEvent, url: string) => void;
}) {
  return more === undefined ? null : (
    <p>
      <a href={more.url} onClick={(event) => follow(event, more.url)}>
        {more.text}
      </a>
    </p>
  );
}

/** A value, once it has not changed for some time. */
function usePaused(value: string, pauseMs: number): string {
  const [paused, setPaused] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(value), pauseMs);
    return () => clearTimeout(timer);
  }, [value, pauseMs]);
  return paused;
}

/** Consumers with a text in their names, exact matches first, and consumers whose UUID begins with the text. */
async function findConsumers(text: string, signal: AbortSignal): Promise<readonly Named[]> {
  const marker = text.length < shortestUuidPart ? undefined : uuidBefore(text);
  const start = text.replaceAll('-', '').toLowerCase();
  const [called, named, begun] = await Promise.all([
    placement.consumers.page({ name: text, limit: mostShown }, { signal }),
    placement.consumers.page({ name_contains: text, limit: mostShown }, { signal }),
    marker === undefined ? [] : placement.consumers.page({ limit: mostShown, marker }, { signal }),
  ]);
  const all = [...called, ...named, ...begun.filter(({ uuid }) => uuid.replaceAll('-', '').startsWith(start))];
  return [...new Map(all.map(({ uuid, name }) => [uuid, { uuid, name }])).values()].slice(0, mostShown);
}
