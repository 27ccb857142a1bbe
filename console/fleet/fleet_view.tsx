import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { following } from '../following.ts';
import { AmountBars } from '../meter.tsx';
import { mirror, openMirror, readAgain } from '../mirror.ts';
import { Link, navigate, urlOf, useRoute } from '../route.tsx';
import { useStore } from '../store.ts';
import { counted, Name, numberText, percentText, shortUuid, visible } from '../text.tsx';
import { Trouble } from '../trouble.tsx';
import { FleetTable } from './fleet_table.tsx';
import { Grid, type GridControl } from './grid.tsx';
import { groupingTraits, groupsOf } from './grouping.ts';
import { Legend } from './legend.tsx';
import { commonClass, fullness, type Measure, openTrees, sumOf, type Tree } from './trees.ts';

const treesNow = openTrees();

/** All root providers as cells, coloured by how full they are. */
export function FleetView() {
  const { query } = useRoute();
  const { version, isComplete, error } = useStore(mirror);
  const live = useStore(following);
  useEffect(openMirror, []);
  const trees = useMemo(() => treesNow(mirror.get()), [version]);
  const sums = useMemo(() => sumOf(trees.map(({ amounts }) => amounts)), [trees]);
  const classes = [...sums.keys()].sort();
  const resourceClass = query.get('class') ?? commonClass(trees);
  const measure: Measure = query.get('of') === 'total' ? 'total' : 'capacity';
  const by = query.get('group') ?? '';
  const search = (query.get('search') ?? '').toLowerCase();
  const isTable = query.get('as') === 'table';
  const groups = useMemo(() => groupsOf(trees, by), [trees, by]);
  const { families, traits } = useMemo(() => groupingTraits(trees), [trees]);
  const [selected, setSelected] = useState<string | undefined>();
  const [hovered, setHovered] = useState<string | undefined>();
  const control = useRef<GridControl>(null);

  const change = (name: string, value: string) => {
    const next = new URLSearchParams(query);
    if (value === '') next.delete(name);
    else next.set(name, value);
    navigate(urlOf('fleet', undefined, next), 'replace');
  };
  const matches =
    search === '' ? trees.length : trees.reduce((sum, tree) => sum + (tree.searched.includes(search) ? 1 : 0), 0);
  const shown = trees.find(({ uuid }) => uuid === (hovered ?? selected));
  const chosen = trees.find(({ uuid }) => uuid === selected);
  const open = (tree: Tree) => navigate(urlOf('providers', tree.uuid));
  const nextMatch = (event: SubmitEvent) => {
    event.preventDefault();
    const all = groups.flatMap((group) => group.trees).filter((tree) => tree.searched.includes(search));
    const next = all[all.findIndex(({ uuid }) => uuid === selected) + 1] ?? all[0];
    if (next !== undefined) control.current?.show(next.uuid);
  };

  if (error !== undefined && trees.length === 0) return <Trouble error={error} what="The fleet" />;
  return (
    <div class="fleet">
      <form class="toolbar" onSubmit={nextMatch}>
        <h1 class="hidden">Fleet</h1>
        <label>
          <span>Class</span>
          <select
            aria-label="Class"
            value={resourceClass}
            onChange={(event) => change('class', event.currentTarget.value)}
          >
            {[...new Set([...classes, resourceClass])].sort().map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          <span>Colour</span>
          <select
            aria-label="Colour"
            value={measure}
            onChange={(event) => change('of', event.currentTarget.value === 'total' ? 'total' : '')}
          >
            <option value="capacity">used of capacity</option>
            <option value="total">used and reserved of total</option>
          </select>
        </label>
        <label>
          <span>Groups</span>
          <select aria-label="Groups" value={by} onChange={(event) => change('group', event.currentTarget.value)}>
            <option value="">none</option>
            <option value="aggregate">aggregates</option>
            <optgroup label="one of several traits">
              {families.map((name) => (
                <option key={name} value={`trait:${name}`}>
                  {name}
                </option>
              ))}
            </optgroup>
            <optgroup label="with and without a trait">
              {traits.map((name) => (
                <option key={name} value={`trait:${name}`}>
                  {name}
                </option>
              ))}
            </optgroup>
          </select>
        </label>
        <label class="grow">
          <span>Search</span>
          <input
            type="search"
            value={query.get('search') ?? ''}
            placeholder="name or UUID, Enter for the next"
            onInput={(event) => change('search', event.currentTarget.value)}
          />
        </label>
        <fieldset class="switch">
          <legend class="hidden">Shown as</legend>
          <button type="button" aria-pressed={!isTable} onClick={() => change('as', '')}>
            Grid
          </button>
          <button type="button" aria-pressed={isTable} onClick={() => change('as', 'table')}>
            Table
          </button>
        </fieldset>
        {isTable ? null : (
          <fieldset class="zoom">
            <legend class="hidden">Zoom</legend>

            <button type="button" aria-label="Zoom in" onClick={() => control.current?.zoom(1.6)}>
              +
            </button>
            <button type="button" aria-label="Zoom out" onClick={() => control.current?.zoom(1 / 1.6)}>
              −
            </button>
            <button type="button" onClick={() => control.current?.showAll()}>
              All
            </button>
          </fieldset>
        )}
      </form>
      <div class="fleet-body">
        <div class="fleet-main">
          {isTable ? (
            <FleetTable groups={groups} resourceClass={resourceClass} measure={measure} search={search} />
          ) : (
            <Grid
              groups={groups}
              resourceClass={resourceClass}
              measure={measure}
              search={search}
              selected={selected}
              control={control}
              onSelect={(tree) => setSelected(tree?.uuid)}
              onHover={(tree) => setHovered(tree?.uuid)}
              onOpen={open}
            />
          )}
        </div>
        <aside class="fleet-side" aria-label="Totals and the chosen provider">
          <p class="status" role="status">
            {isComplete || trees.length > 0 ? counted(trees.length, 'root provider') : 'Reading…'}
            {search === '' ? '' : `, ${numberText(matches)} found`}
            {isComplete ? '' : trees.length > 0 ? ', reading more…' : ''}
          </p>
          {live.state === 'off' ? (
            <>
              <Trouble error={live.error} what="Telling changes at once" />
              <button type="button" onClick={readAgain}>
                Read again
              </button>
            </>
          ) : null}
          {error === undefined ? null : <Trouble error={error} what="The fleet" />}
          {isComplete && trees.length === 0 ? (
            <p>
              The service has no providers yet. The command <code>placement demo</code> makes some.
            </p>
          ) : null}
          <Legend trees={trees} resourceClass={resourceClass} measure={measure} />
          {shown === undefined ? (
            <section>
              <h2>All together</h2>
              <AmountBars amounts={sums} />
              <p class="faint" id="grid-keys">
                Wheel or + and − zoom, 0 shows all, arrow keys choose a provider, Enter opens it.
              </p>
            </section>
          ) : (
            <section>
              <h2>
                <Link to={urlOf('providers', shown.uuid)}>
                  <Name text={shown.name} />
                </Link>
              </h2>
              <p class="faint">
                {shortUuid(shown.uuid)}… · {counted(shown.providers, 'provider')} ·{' '}
                {counted(shown.traits.size, 'trait')}
              </p>
              <AmountBars amounts={shown.amounts} />
              <p class="hidden" id="grid-keys">
                Plus and minus zoom, 0 shows all, arrow keys choose a provider, Enter opens it.
              </p>
            </section>
          )}
          <p class="hidden" aria-live="polite">
            {chosen === undefined
              ? ''
              : `${visible(chosen.name)}, ${resourceClass} ${percentText(fullness(chosen.amounts.get(resourceClass), measure))} full`}
          </p>
        </aside>
      </div>
    </div>
  );
}
