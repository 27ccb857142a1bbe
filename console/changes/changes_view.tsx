import { useEffect, useState } from 'preact/hooks';
import type { ProviderPart } from '../../src/client/changes.ts';
import { following } from '../following.ts';
import { openMirror } from '../mirror.ts';
import { ProviderLink } from '../provider_link.tsx';
import { useStore } from '../store.ts';
import { Table } from '../table.tsx';
import { clockText, counted, numberText } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useTick } from '../use_tick.ts';
import { changeLog, type Logged, logBegan, mostKept } from './change_log.ts';
import { ratesOf } from './rates.ts';

/** How many changes are shown at first, and how many more by a button. */
const shownAtOnce = 300;
/** After this time what was and is will not be read any more, in milliseconds. */
const readMs = 10_000;
const seconds = 60;
const allParts: readonly ProviderPart[] = ['provider', 'inventories', 'traits', 'aggregates', 'usages'];

/** What changes, as it happens. */
export function ChangesView() {
  const live = useStore(following);
  const log = useStore(changeLog);
  const began = useStore(logBegan);
  const [mostShown, setMostShown] = useState(shownAtOnce);
  const [paused, setPaused] = useState<readonly Logged[] | undefined>();
  useEffect(openMirror, []);
  const [parts, setParts] = useState<ReadonlySet<string>>(new Set(allParts));
  useTick(1000);

  const chosen = (paused ?? log).filter(
    ({ change }) => !('parts' in change) || change.parts.some((part) => parts.has(part)),
  );
  const shown = chosen.slice(0, mostShown);
  const oldest = chosen.at(-1);
  const since = (paused ?? log).at(-1)?.at ?? began;
  const rates = ratesOf(log, seconds);
  const most = Math.max(1, ...rates);
  const showMore = ({ currentTarget: { previousElementSibling: table } }: Event & { currentTarget: HTMLElement }) => {
    setMostShown(mostShown + shownAtOnce);
    // Where all are shown then, the button with the focus is removed.
    const isLast = mostShown + shownAtOnce >= chosen.length;
    if (isLast && table instanceof HTMLElement) table.focus({ preventScroll: true });
  };
  const lastMinute = rates.reduce((sum, rate) => sum + rate, 0);
  return (
    <div class="changes">
      <h1>Changes</h1>
      {live.state === 'off' ? <Trouble error={live.error} what="Following changes" /> : null}
      <form class="toolbar" onSubmit={(event) => event.preventDefault()}>
        <fieldset class="checks">
          <legend>Parts</legend>
          {allParts.map((part) => (
            <label key={part}>
              <input
                type="checkbox"
                checked={parts.has(part)}
                onChange={(event) => {
                  const next = new Set(parts);
                  if (event.currentTarget.checked) next.add(part);
                  else next.delete(part);
                  setParts(next);
                }}
              />
              {part}
            </label>
          ))}
        </fieldset>
        <button type="button" onClick={() => setPaused(paused === undefined ? log : undefined)}>
          {paused === undefined ? 'Pause' : 'Continue'}
        </button>
      </form>
      {since === undefined ? null : (
        <figure class="rates">
          <svg viewBox={`0 0 ${seconds} 20`} preserveAspectRatio="none" aria-hidden="true">
            {rates.map((rate, index) => (
              <rect key={index} x={index + 0.1} width="0.8" y={20 - (rate / most) * 19} height={(rate / most) * 19} />
            ))}
          </svg>
          <figcaption>
            {counted(lastMinute, 'change')} in the last minute
            {most > 1 ? `, at most ${numberText(most)} in a second` : ''}
          </figcaption>
        </figure>
      )}
      <p class="hidden" role="status">
        {live.state === 'live' ? 'Changes are shown as they happen.' : ''}
      </p>
      {oldest === undefined ? (
        live.state !== 'live' || since === undefined ? null : (
          <p class="faint">
            {log.length === 0 ? 'Nothing has changed' : 'No such change'} since {clockText(since)}. What changed before
            is not known here.
          </p>
        )
      ) : (
        <>
          <p class="faint">
            {shown.length < chosen.length ? `The newest ${numberText(shown.length)} of ` : ''}
            {counted(chosen.length, 'change')} since {clockText(oldest.at)}
            {paused === undefined ? '' : '; paused'}. Kept for ten minutes, {numberText(mostKept)} at most, while this
            page is open.
          </p>
          <Table name="Table of changes, the newest first" headings={['time', 'what', 'parts', 'was → is']}>
            {shown.map(({ number, at, change, differences }) => (
              <tr key={number}>
                <td class="time">{clockText(at)}</td>
                {'resource_provider' in change ? (
                  <>
                    <td>
                      <ProviderLink uuid={change.resource_provider} />
                    </td>
                    <td>{'deleted' in change ? 'deleted' : change.parts.join(', ')}</td>
                    <td>{'deleted' in change ? '' : differenceText(differences, at)}</td>
                  </>
                ) : (
                  <td colSpan={3}>{'traits' in change ? 'the list of traits' : 'the list of resource classes'}</td>
                )}
              </tr>
            ))}
          </Table>
          {shown.length < chosen.length ? (
            <button type="button" onClick={showMore}>
              Show {numberText(Math.min(shownAtOnce, chosen.length - shown.length))} more
            </button>
          ) : null}
        </>
      )}
    </div>
  );
}

/** What was and is; until it is read, a sign that it will be. */
function differenceText(differences: readonly string[] | undefined, at: Date) {
  if (differences === undefined) {
    return <span class="faint">{Date.now() - at.getTime() < readMs ? '…' : 'not read'}</span>;
  }
  return differences.length === 0 ? <span class="faint">as before</span> : differences.join(', ');
}
