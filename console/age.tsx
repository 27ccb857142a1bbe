import { ageText, timeText } from './text.ts';
import { useTick } from './use_tick.ts';

/** The time between two updates of a shown age, in milliseconds. */
const tickMs = 5_000;

/** How long ago a time of an answer is, with the time itself as its title. */
export function Age({ at }: { readonly at: string | null | undefined }) {
  useTick(tickMs);
  return at === null || at === undefined ? (
    <>—</>
  ) : (
    <time dateTime={at} title={timeText(at)}>
      {ageText(at)}
    </time>
  );
}
