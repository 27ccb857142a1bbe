import { useEffect, useRef, useState } from 'preact/hooks';
import type { View } from '../src/console/views.ts';
import { openChangeLog } from './changes/change_log.ts';
import { ChangesView } from './changes/changes_view.tsx';
import { ConsumerView } from './consumer/consumer_view.tsx';
import { FitView } from './fit/fit_view.tsx';
import { AggregateView } from './fleet/aggregate_view.tsx';
import { FleetView } from './fleet/fleet_view.tsx';
import { follow, following } from './following.ts';
import { HelpDialog } from './help_dialog.tsx';
import { HoldingsView } from './holdings/holdings_view.tsx';
import { LimitsView } from './limits/limits_view.tsx';
import { ProviderView } from './provider/provider_view.tsx';
import { Link, urlOf, useRoute } from './route.tsx';
import { SearchDialog } from './search/search_dialog.tsx';
import { connection, serverVersion, slowRequests, token } from './session.ts';
import { useStore } from './store.ts';
import { visible } from './text.ts';
import { titled } from './title.ts';
import { TokenDialog } from './token_dialog.tsx';
import { uuidOf } from './uuid.ts';
import { WaitingView } from './waiting/waiting_view.tsx';

const titles: Readonly<Record<View, string>> = {
  fleet: 'Fleet',
  aggregates: 'Aggregates',
  providers: 'Provider',
  consumers: 'Consumer',
  limits: 'Limits',
  holdings: 'Holders',
  waiting: 'Waiting',
  fit: 'Where does it fit?',
  changes: 'Changes',
};

/** The views that show one thing where the URL names it. */
const withThings: ReadonlySet<View> = new Set(['aggregates', 'providers', 'consumers', 'limits']);

/** The page: the parts that all views share, and the view of the URL. */
export function App() {
  const route = useRoute();
  const { view, query } = route;
  // A project that cannot be a part of a path is in the query.
  const id = route.id ?? ((view === 'limits' && query.get('project')) || undefined);
  const isNothing = id !== undefined && !withThings.has(view);
  const [open, setOpen] = useState<Opened>();
  useEffect(() => onKeys(setOpen), []);
  // Every view shows whether the page follows the changes.
  useEffect(() => follow(() => {}), []);
  useEffect(openChangeLog, []);
  const title = useStore(titled);
  const what = title !== undefined && (title.id === id || title.id === uuidOf(id ?? '')) ? title.name : id;
  useEffect(() => {
    document.title = [...(what === undefined ? [] : [visible(what)]), titles[view], 'Placement'].join(' · ');
  }, [view, what]);
  const main = useRef<HTMLElement>(null);
  const isFirst = useRef(true);
  useEffect(() => {
    // What had the focus may be gone with what was shown, such as a link: keyboard and screen reader go on in the view.
    if (!isFirst.current && document.activeElement === document.body) main.current?.focus({ preventScroll: true });
    isFirst.current = false;
  }, [route]);
  return (
    <>
      <a class="skip" href="#view">
        Skip to the view
      </a>
      <header class="top">
        <span class="brand" aria-hidden="true">
          Placement
        </span>
        <nav aria-label="Views">
          {(Object.keys(titles) as readonly View[]).map((name) => (
            <Link key={name} to={urlOf(name)} current={name === view}>
              {name === 'fit' ? <FitTitle /> : titles[name]}
            </Link>
          ))}
        </nav>
        <Status open={setOpen} />
      </header>
      <main id="view" ref={main} tabIndex={-1} class={`view-${view}`}>
        {isNothing ? <NoPage /> : null}
        {view === 'fleet' && !isNothing ? <FleetView /> : null}
        {view === 'aggregates' ? <AggregateView id={id} /> : null}
        {view === 'providers' ? <ProviderView id={id} /> : null}
        {view === 'consumers' ? <ConsumerView id={id} /> : null}
        {view === 'limits' ? <LimitsView id={id} /> : null}
        {view === 'holdings' && !isNothing ? <HoldingsView /> : null}
        {view === 'waiting' && !isNothing ? <WaitingView /> : null}
        {view === 'fit' && !isNothing ? <FitView /> : null}
        {view === 'changes' && !isNothing ? <ChangesView /> : null}
      </main>
      {open === 'search' ? <SearchDialog close={() => setOpen(undefined)} /> : null}
      {open === 'help' ? <HelpDialog close={() => setOpen(undefined)} /> : null}
      <TokenDialog />
    </>
  );
}

/** For a URL that is of no page. */
const NoPage = () => (
  <>
    <h1>No such page</h1>
    <p role="status">
      The console has no page <code>{visible(location.pathname)}</code>. <Link to={urlOf('fleet')}>The fleet</Link>
    </p>
  </>
);

/** The dialog that is open. */
type Opened = 'search' | 'help' | undefined;

/** `/` opens the search and `?` the help, unless the user types a text or a dialog is open. @returns a function that removes these keys */
function onKeys(open: (dialog: Opened) => void): () => void {
  const listening = new AbortController();
  const key = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]') !== null) return;
    if (event.target instanceof Element && event.target.closest('input, select, textarea') !== null) return;
    const dialog = event.key === '/' ? 'search' : event.key === '?' ? 'help' : undefined;
    if (dialog === undefined) return;
    event.preventDefault();
    open(dialog);
  };
  document.addEventListener('keydown', key, { signal: listening.signal });
  return () => listening.abort();
}

/** A narrow window has room for one word. */
const FitTitle = () => (
  <>
    <span class="wide-only">{titles.fit}</span>
    <span class="narrow-only">Fit</span>
  </>
);

/** The state of the service and of the changes, the version, and a button for another token. */
function Status({ open }: { readonly open: (dialog: Opened) => void }) {
  const reached = useStore(connection);
  const live = useStore(following);
  const isReading = useStore(slowRequests) > 0;
  const version = useStore(serverVersion);
  const now = useStore(token);
  const [kind, text] =
    reached === 'silent'
      ? ['silent', 'no answer, trying again']
      : live.state === 'off'
        ? ['off', 'not live']
        : isReading
          ? ['starting', 'reading']
          : live.state === 'live'
            ? ['live', 'live']
            : ['starting', 'connected'];
  return (
    <div class="state">
      <span role="status" class={`dot ${kind}`}>
        {now.state === 'given' ? text : 'no token'}
      </span>
      {version === undefined ? null : <span class="version-of">{version}</span>}
      {now.state === 'given' ? (
        <>
          <button type="button" class="small" onClick={() => open('search')}>
            Search <kbd class="wide-only">/</kbd>
          </button>
          <button type="button" class="small" aria-label="Keys and words (?)" onClick={() => open('help')}>
            ?
          </button>
        </>
      ) : null}
      {now.state === 'given' ? (
        // A reload forgets all that this token has read.
        <button type="button" class="small" onClick={() => location.reload()}>
          Other token
        </button>
      ) : null}
    </div>
  );
}
