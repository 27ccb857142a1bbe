import { ageText, timeText } from './text.ts';

/** How long ago a time of an answer is, with the time itself as its title. */
export const Age = ({ at }: { readonly at: string | null | undefined }) =>
  at === null || at === undefined ? (
    <>—</>
  ) : (
    <time dateTime={at} title={timeText(at)}>
      {ageText(at)}
    </time>
  );
