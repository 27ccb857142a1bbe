import { following } from './following.ts';
import { useStore } from './store.ts';
import { clockText } from './text.ts';

/** When the shown data was read. `follows`: the data is read again after changes, so it is live while the page is. */
export function AsOf({ at, follows = false }: { readonly at: Date | undefined; readonly follows?: boolean }) {
  const live = useStore(following);
  if (at === undefined) return null;
  const isLive = follows && live.state === 'live';
  return (
    <p class="faint as-of">
      As of {clockText(at)}
      {isLive ? ', follows changes' : ''}
    </p>
  );
}
