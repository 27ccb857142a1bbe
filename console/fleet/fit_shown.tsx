import { useMemo } from 'preact/hooks';
import { AsOf } from '../as_of.tsx';
import type { Fits } from '../fit/fits.ts';
import { conditionTexts, leftOutOf, type QueryFields, searchOf, withoutQuery } from '../fit/query_fields.ts';
import { reasonOf } from '../fit/reason.ts';
import { type LoadedFits, mostReturned } from '../fit/use_fits.ts';
import { mirror } from '../mirror.ts';
import { Link, urlOf } from '../route.tsx';
import { useStore } from '../store.ts';
import { counted, numberText, visible } from '../text.ts';
import { LeftOut, Trouble } from '../trouble.tsx';
import { unmetIn } from './cell_style.ts';
import { currentPalette, type Palette } from './palette.ts';
import type { Tree } from './trees.ts';

/** Above the grid: which query it shows, as of when, and the ways back. */
export function FitBanner({
  fields,
  query,
  loaded: { at, error },
  unused,
}: {
  readonly fields: QueryFields;
  readonly query: URLSearchParams;
  readonly loaded: LoadedFits;
  /** Classes of the query that no provider has. */
  readonly unused: readonly string[];
}) {
  return (
    <section class="fit-shown" aria-label="The query that is shown">
      <h2>Where it fits</h2>
      <ul class="chips">
        {conditionTexts(fields).map((text) => (
          <li key={text}>{visible(text)}</li>
        ))}
      </ul>
      <LeftOut names={leftOutOf(query)} />
      <AsOf at={at} follows />
      <p>
        <Link to={urlOf('fit', undefined, searchOf(fields))}>Back to the query</Link> ·{' '}
        <Link to={urlOf('fleet', undefined, withoutQuery(query))}>Show how full</Link>
      </p>
      {unused.length === 0 ? null : (
        <p role="status">No provider has any {unused.map(visible).join(', ')}, so it fits nowhere.</p>
      )}
      {error === undefined ? null : <Trouble error={error} what="Where it fits" />}
    </section>
  );
}

/** The legend of the colours while a query is shown, and how many trees have each colour. */
export function FitLegend({ trees, fits }: { readonly trees: readonly Tree[]; readonly fits: Fits | undefined }) {
  const palette = useStore(currentPalette);
  const counts = useMemo(() => (fits === undefined ? undefined : countsOf(trees, fits)), [trees, fits]);
  if (fits === undefined || counts === undefined) return <p class="faint">Asking…</p>;
  const { fitting, near, drained, others } = counts;
  return (
    <figure class="legend">
      <p role="status">
        It fits <strong>{numberText(fitting)}</strong> of {counted(trees.length, 'tree')}
        {fitting === 0 ? '.' : `, up to ${numberText(fits.most)} times in one; each is counted alone.`}
      </p>
      <ul class="key swatches" aria-label="What the colours mean">
        <li>
          <Swatch palette={palette} kind="fits" /> fits: the more often, the stronger ({numberText(fitting)})
        </li>
        <li>
          <Swatch palette={palette} kind="near" /> nearly fits ({numberText(near)})
        </li>
        <li>
          <Swatch palette={palette} kind="none" /> does not fit, hollow ({numberText(others)})
        </li>
        {drained === 0 ? null : (
          <li>
            <Swatch palette={palette} kind="drained" /> drained, striped ({numberText(drained)})
          </li>
        )}
      </ul>
      <figcaption>
        Nearly: one condition is not met, and of an amount at least half is left.
        {fits.unmet.size < mostReturned.nearest
          ? ''
          : ` Of the trees that do not fit, the nearest ${numberText(mostReturned.nearest)} were looked at.`}
        {fits.times.size < mostReturned.fitting
          ? ''
          : ` Only the ${numberText(mostReturned.fitting)} trees in which it fits most often are known.`}{' '}
        A group that is one cell is the stronger, the more of its trees it fits.
      </figcaption>
    </figure>
  );
}

/** How many trees each colour has. */
function countsOf(trees: readonly Tree[], fits: Fits) {
  const counts = { fitting: 0, near: 0, drained: 0, others: 0 };
  for (const { uuid, drain } of trees) {
    if (fits.times.has(uuid)) counts.fitting++;
    else if (fits.near.has(uuid)) counts.near++;
    else if (drain === 'drained') counts.drained++;
    else counts.others++;
  }
  return counts;
}

/** The colour of a kind of cell, as the grid draws it. */
function Swatch({
  palette: { steps, near, none, drained, stripe },
  kind,
}: {
  readonly palette: Palette;
  readonly kind: 'fits' | 'near' | 'none' | 'drained';
}) {
  return (
    <svg class="swatch" viewBox="0 0 24 12" aria-hidden="true">
      {kind === 'fits' ? (
        [5, 12, 20].map((step, index) => <rect key={step} x={8 * index} width="8" height="12" fill={steps[step]} />)
      ) : kind === 'none' ? (
        <rect x="0.5" y="0.5" width="23" height="11" fill="none" stroke={none} />
      ) : (
        <rect width="24" height="12" fill={kind === 'near' ? near : drained} />
      )}
      {kind === 'drained' ? <path d="M0 12L12 0M8 12L20 0M16 12L24 4" stroke={stripe} stroke-width="2.5" /> : null}
    </svg>
  );
}

/** Whether the query fits in a tree, in a sentence. */
export function fitText(fits: Fits | undefined, tree: Tree): string {
  if (fits === undefined) return '';
  const times = fits.times.get(tree.uuid) ?? 0;
  if (times > 0) return `It fits ${times === 1 ? 'once' : `${numberText(times)} times`}.`;
  return fits.near.has(tree.uuid) ? 'It nearly fits.' : 'It does not fit.';
}

/** What keeps the query from fitting in a tree, each condition in a sentence. */
export const unmetTexts = (fits: Fits | undefined, tree: Tree): readonly string[] =>
  unmetIn(fits, tree).map(
    (condition) =>
      `${visible(`${condition.parameter}=${condition.value}`)}: ${reasonOf(condition, mirror.get().providers)}`,
  );

/** Whether the query fits in a tree that was chosen, and why not. */
export function FitOf({
  fits,
  tree,
  fields,
}: {
  readonly fits: Fits | undefined;
  readonly tree: Tree;
  readonly fields: QueryFields;
}) {
  if (fits === undefined) return null;
  const texts = fits.times.has(tree.uuid) ? [] : unmetTexts(fits, tree);
  return (
    <>
      <p>
        <strong>{fitText(fits, tree)}</strong>
      </p>
      {texts.length === 0 ? null : (
        <ul class="unmet">
          {texts.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      )}
      {fits.times.has(tree.uuid) ? null : (
        <p>
          <Link to={urlOf('fit', undefined, searchOf({ ...fields, tree: tree.uuid }))}>Why does it not fit here?</Link>
        </p>
      )}
    </>
  );
}
