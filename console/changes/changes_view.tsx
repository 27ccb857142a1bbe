import { useEffect, useRef, useState } from 'preact/hooks';
import type { FollowedChange, ProviderPart } from '../../src/client/changes.ts';
import { follow, following } from '../following.ts';
import { ProviderLink } from '../provider_link.tsx';
import { useStore } from '../store.ts';
import { Table } from '../table.tsx';
import { counted, numberText } from '../text.ts';
import { Trouble } from '../trouble.tsx';

type Seen = { readonly number: number; readonly at: Date; readonly change: FollowedChange };

/** How many changes are kept on the page. */
const mostSeen = 300;
const seconds = 60;
const allParts: readonly ProviderPart[] = ['provider', 'inventories', 'traits', 'aggregates', 'usages'];
const clock = new Intl.DateTimeFormat('en', { timeStyle: 'medium', hourCycle: 'h23' });

/** What changes, as it happens. */
export function ChangesView() {
  const live = useStore(following);
  const [seen, setSeen] = useState<readonly Seen[]>([]);
  const [isPaused, setPaused] = useState(false);
  const [parts, setParts] = useState<ReadonlySet<string>>(new Set(allParts));
  const [rates, setRates] = useState<readonly number[]>(() => new Array<number>(seconds).fill(0));
  const waiting = useRef<Seen[]>([]);
  const count = useRef({ total: 0, thisSecond: 0 });
  const paused = useRef(false);
  paused.current = isPaused;

  useEffect(() => {
    const unfollow = follow((change) => {
      if ('everything' in change) return;
      count.current.total++;
      count.current.thisSecond++;
      waiting.current.push({ number: count.current.total, at: new Date(), change });
      if (waiting.current.length > mostSeen) waiting.current.shift();
    });
    const showing = setInterval(() => {
      if (paused.current || waiting.current.length === 0) return;
      const news = waiting.current.splice(0).reverse();
      setSeen((before) => [...news, ...before].slice(0, mostSeen));
    }, 250);
    const counting = setInterval(() => {
      const { thisSecond } = count.current;
      count.current.thisSecond = 0;
      setRates((before) =>
        thisSecond === 0 && before.every((rate) => rate === 0) ? before : [...before.slice(1), thisSecond],
      );
    }, 1000);
    return () => {
      unfollow();
      clearInterval(showing);
      clearInterval(counting);
    };
  }, []);

  const shown = seen.filter(({ change }) => !('parts' in change) || change.parts.some((part) => parts.has(part)));
  const most = Math.max(1, ...rates);
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
        <button type="button" aria-pressed={isPaused} onClick={() => setPaused(!isPaused)}>
          Pause
        </button>
      </form>
      <figure class="rates">
        <svg viewBox={`0 0 ${seconds} 20`} preserveAspectRatio="none" aria-hidden="true">
          {rates.map((rate, place) => (
            <rect key={place} x={place + 0.1} width="0.8" y={20 - (rate / most) * 19} height={(rate / most) * 19} />
          ))}
        </svg>
        <figcaption>
          {counted(lastMinute, 'change')} in the last minute
          {most > 1 ? `, at most ${numberText(most)} in a second` : ''}
        </figcaption>
      </figure>
      <p class="hidden" role="status">
        {live.state === 'live' ? 'Changes are shown as they happen.' : ''}
      </p>
      {shown.length === 0 ? (
        <p class="faint">Nothing has changed since this page was opened.</p>
      ) : (
        <Table name="Table of changes, the newest first" headings={['time', 'what', 'parts']}>
          {shown.map(({ number, at, change }) => (
            <tr key={number}>
              <td class="time">{clock.format(at)}</td>
              {'resource_provider' in change ? (
                <>
                  <td>
                    <ProviderLink uuid={change.resource_provider} />
                  </td>
                  <td>{'deleted' in change ? 'deleted' : change.parts.join(', ')}</td>
                </>
              ) : (
                <td colSpan={2}>{'traits' in change ? 'the list of traits' : 'the list of resource classes'}</td>
              )}
            </tr>
          ))}
        </Table>
      )}
    </div>
  );
}
