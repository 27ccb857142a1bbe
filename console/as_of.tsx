import { following } from './following.ts';
import { useStore } from './store.ts';
import { clockText, timeText } from './text.ts';
import { useTick } from './use_tick.ts';

/** How often it is checked whether the data is of another day, in milliseconds. */
const tickMs = 60_000;

/** When the shown data was read. `follows`: the data is read again after changes, so it is live while the page is. */
export function AsOf({ at, follows = false }: { readonly at: Date | undefined; readonly follows?: boolean }) {
  const live = useStore(following);
  useTick(tickMs);
  if (at === undefined) return null;
  const isLive = follows && live.state === 'live';
  const isToday = at.toDateString() === new Date().toDateString();
  return (
    <p class="faint as-of">
      As of {isToday ? clockText(at) : timeText(at.toISOString())}
      {isLive ? ', follows changes' : ''}
    </p>
  );
}
