import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { candidateQueryOf, classesOf, fieldsOf } from '../fit/query_fields.ts';
import { useFits } from '../fit/use_fits.ts';
import { following } from '../following.ts';
import { AmountBars } from '../meter.tsx';
import { mirror, openMirror, readAgain } from '../mirror.ts';
import { Name } from '../name.tsx';
import { changed, Link, navigate, urlOf, useOfUrl, useRoute } from '../route.tsx';
import { useStore } from '../store.ts';
import { counted, numberText, percentText, shortUuid, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { uuidOf } from '../uuid.ts';
import { fitStyle, fullnessStyle } from './cell_style.ts';
import { drainText } from './drain.tsx';
import { FitBanner, FitLegend, FitOf, fitText } from './fit_shown.tsx';
import { FleetTable } from './fleet_table.tsx';
import { Grid, type GridCell, type GridControl } from './grid.tsx';
import { type Group, groupingTraits, groupsOf } from './grouping.ts';
import { Legend } from './legend.tsx';
import { commonClass, fullness, type Measure, sumOf, type Tree } from './trees.ts';
import { useTrees } from './use_trees.ts';

/** All root providers as cells, coloured by how full they are. */
export function FleetView() {
  const { query } = useRoute();
  const { isComplete, error } = useStore(mirror);
  const live = useStore(following);
  useEffect(openMirror, []);
  const trees = useTrees();
  const sums = useMemo(() => sumOf(trees.map(({ amounts }) => amounts)), [trees]);
  const classes = [...sums.keys()].sort();
  const resourceClass = query.get('class') ?? commonClass(trees);
  const measure: Measure = query.get('of') === 'total' ? 'total' : 'capacity';
  const by = query.get('group') ?? '';
  const written = (query.get('search') ?? '').trim();
  const search = uuidOf(written) ?? written.toLowerCase();
  const fields = fieldsOf(query);
  const fitsOfQuery = useFits(fields);
  const isFit = candidateQueryOf(fields) !== undefined;
  const cellStyle = useMemo(
    () => (isFit ? fitStyle(fitsOfQuery.fits) : fullnessStyle(resourceClass, measure)),
    [isFit, fitsOfQuery.fits, resourceClass, measure],
  );
  const isTable = query.get('as') === 'table';
  const groups = useMemo(() => groupsOf(trees, by), [trees, by]);
  const { families, traits } = useMemo(() => groupingTraits(trees), [trees]);
  const [selected, setSelected] = useChosen(query);
  const [selectedGroup, setSelectedGroup] = useState<string | undefined>();
  const [hovered, setHovered] = useState<GridCell | undefined>();
  const control = useRef<GridControl>(null);

  const change = (name: string, value: string) =>
    navigate(urlOf('fleet', undefined, changed(query, { [name]: value })), 'replace');
  const matches =
    search === '' ? trees.length : trees.reduce((sum, tree) => sum + (tree.searched.includes(search) ? 1 : 0), 0);
  const treeWith = (uuid: string | undefined) => trees.find((tree) => tree.uuid === uuid);
  const groupWith = (key: string | undefined) => groups.find((group) => group.key === key);
  const chosen = treeWith(selected);
  const chosenGroup = chosen === undefined ? undefined : groupWith(selectedGroup);
  const shownGroup = hovered === undefined ? chosenGroup : hovered.isWhole ? groupWith(hovered.group.key) : undefined;
  const shown = hovered === undefined ? chosen : treeWith(hovered.tree.uuid);
  const partText = (amounts: Tree['amounts']) => {
    const each = amounts.get(resourceClass);
    return each === undefined
      ? `has no ${visible(resourceClass)}`
      : `${visible(resourceClass)} ${percentText(fullness(each, measure))} full`;
  };
  const treeText = (tree: Tree) => {
    const fullOrFits = isFit ? fitText(fitsOfQuery.fits, tree) : tree.drain === 'drained' ? '' : partText(tree.amounts);
    return [fullOrFits, drainText(tree)].filter((text) => text !== '').join(' ');
  };
  const groupText = (group: Group) => (isFit ? `it fits ${cellStyle.textOfGroup(group)} trees` : partText(group.sums));
  const open = (tree: Tree) => navigate(urlOf('providers', tree.uuid));
  const nextMatch = (event: SubmitEvent) => {
    event.preventDefault();
    // A tree of several aggregates is in several groups.
    const inGroups = new Set(groups.flatMap((group) => group.trees));
    const all = [...inGroups].filter((tree) => tree.searched.includes(search));
    const next = all[all.findIndex(({ uuid }) => uuid === selected) + 1] ?? all[0];
    if (next !== undefined) control.current?.show(next.uuid);
  };

  if (error !== undefined && trees.length === 0)
    return <Trouble error={error} what="The fleet" mayAskByProject="elsewhere" />;
  return (
    <div class="fleet">
      <form class="toolbar" onSubmit={nextMatch}>
        <h1 class="hidden">Fleet</h1>
        {isFit ? null : (
          <>
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
          </>
        )}
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
            placeholder={`part of a name or UUID${isTable ? '' : ', Enter for the next'}`}
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
      {isFit ? (
        <FitBanner
          fields={fields}
          query={query}
          loaded={fitsOfQuery}
          unused={isComplete ? classesOf(fields).filter((name) => !sums.has(name)) : []}
        />
      ) : null}
      <div class="fleet-body">
        <div class="fleet-main">
          {isTable ? (
            <FleetTable
              groups={groups}
              resourceClass={resourceClass}
              measure={measure}
              fits={isFit ? fitsOfQuery : undefined}
              search={search}
              sort={query.get('sort') ?? ''}
              page={Number(query.get('page') ?? 1)}
              urlWith={(next) => urlOf('fleet', undefined, changed(query, next))}
            />
          ) : (
            <Grid
              groups={groups}
              cellStyle={cellStyle}
              search={search}
              selected={selected}
              control={control}
              onSelect={(cell) => {
                setSelected(cell?.tree.uuid);
                setSelectedGroup(cell?.isWhole ? cell.group.key : undefined);
              }}
              onHover={setHovered}
              onOpen={open}
            />
          )}
        </div>
        <aside class="fleet-side" aria-label="Totals and the chosen provider">
          <p class="status" role="status">
            {isComplete || trees.length > 0
              ? counted(trees.length, 'root provider')
              : error === undefined
                ? 'Reading…'
                : ''}
            {search === '' ? '' : `, ${numberText(matches)} found`}
            {isComplete ? '' : trees.length > 0 ? ', reading more…' : ''}
          </p>
          {live.state === 'off' ? (
            <>
              <Trouble error={live.error} what="Following changes" />
              <button type="button" onClick={readAgain}>
                Read again
              </button>
            </>
          ) : null}
          {error === undefined ? null : <Trouble error={error} what="The fleet" />}
          {isComplete && trees.length === 0 ? (
            <p>
              The service has no providers yet. nova-compute registers its hosts by itself; others are registered by a
              command, such as <code>placement provider create host-1</code> and{' '}
              <code>placement inventory set host-1 VCPU=64</code>, or from a file by <code>placement apply</code>. To
              try it out: <code>placement demo</code>.
            </p>
          ) : null}
          {isFit ? (
            <FitLegend trees={trees} fits={fitsOfQuery.fits} />
          ) : (
            <Legend trees={trees} resourceClass={resourceClass} measure={measure} />
          )}
          <Described
            tree={shownGroup === undefined ? shown : undefined}
            group={shownGroup}
            sums={sums}
            isTable={isTable}
          >
            {isFit && shown !== undefined ? <FitOf fits={fitsOfQuery.fits} tree={shown} fields={fields} /> : null}
          </Described>
          <p class="hidden" aria-live="polite">
            {chosenGroup !== undefined
              ? `${chosenGroup.label}, ${counted(chosenGroup.trees.length, 'root provider')}, ${groupText(chosenGroup)}`
              : chosen === undefined
                ? ''
                : `${visible(chosen.name)}, ${treeText(chosen)}`}
          </p>
        </aside>
      </div>
      {chosen === undefined ? null : (
        <div class="chosen-bar">
          {chosenGroup === undefined ? (
            <Link to={urlOf('providers', chosen.uuid)}>
              <Name text={chosen.name} />
            </Link>
          ) : (
            <strong>{chosenGroup.label}</strong>
          )}
          <span>{chosenGroup === undefined ? treeText(chosen) : groupText(chosenGroup)}</span>
          <button type="button" class="small" aria-label="Choose nothing" onClick={() => setSelected(undefined)}>
            ×
          </button>
        </div>
      )}
    </div>
  );
}

/** What the pointer is on or what was chosen: a tree or a group; otherwise all together. */
function Described({
  tree,
  group,
  sums,
  isTable,
  children,
}: {
  readonly tree: Tree | undefined;
  readonly group: Group | undefined;
  readonly sums: Tree['amounts'];
  /** The table has no keys of its own. */
  readonly isTable: boolean;
  /** What else is said about a tree. */
  readonly children: ComponentChildren;
}) {
  if (group !== undefined) {
    return (
      <section>
        <h2>
          {uuidOf(group.key) !== undefined ? (
            <Link to={urlOf('aggregates', group.key)}>{group.label}</Link>
          ) : (
            group.label
          )}
        </h2>
        <p class="faint">{counted(group.trees.length, 'root provider')}</p>
        <AmountBars amounts={group.sums} />
        <p class="faint" id="grid-keys">
          Enter or a double click zooms to its providers.
        </p>
      </section>
    );
  }
  if (tree !== undefined) {
    return (
      <section>
        <h2>
          <Link to={urlOf('providers', tree.uuid)}>
            <Name text={tree.name} />
          </Link>
        </h2>
        <p class="faint">
          {shortUuid(tree.uuid)}… · {counted(tree.providers, 'provider')} · {counted(tree.traits.size, 'trait')}
        </p>
        {drainText(tree) === '' ? null : <p>{drainText(tree)}</p>}
        {children}
        {tree.drain === 'drained' ? null : <AmountBars amounts={tree.amounts} />}
        <p class="hidden" id="grid-keys">
          Plus and minus zoom, 0 shows all, arrow keys choose a provider, Enter opens it.
        </p>
      </section>
    );
  }
  return (
    <section>
      <h2>All together</h2>
      <AmountBars amounts={sums} />
      {isTable ? null : (
        <p class="faint" id="grid-keys">
          <span class="wide-only">
            Wheel or + and − zoom, 0 shows all, arrow keys choose a provider, Enter opens it.
          </span>
          <span class="narrow-only">Two fingers or + and − zoom, All shows all, a tap chooses a provider.</span>
        </p>
      )}
    </section>
  );
}

/** The time after which the URL has what was chosen, in milliseconds: browsers refuse many changes in a short time. */
const urlDelayMs = 250;

/** The UUID of the chosen tree. The URL has it as well. */
function useChosen(query: URLSearchParams): [string | undefined, (uuid: string | undefined) => void] {
  const ofUrl = query.get('chosen') ?? undefined;
  const [chosen, setChosen] = useOfUrl(ofUrl);
  // It ends with the render. After the next paint it may be too late: the URL of the next view would be replaced by this one's.
  useLayoutEffect(() => {
    if (chosen === ofUrl) return;
    const timer = setTimeout(
      () => navigate(urlOf('fleet', undefined, changed(query, { chosen: chosen ?? '' })), 'replace'),
      urlDelayMs,
    );
    return () => clearTimeout(timer);
  }, [chosen, query]);
  return [chosen, setChosen];
}
