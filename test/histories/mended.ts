/*
 * Rules that the service does not keep yet. With `false` the checker allows that it breaks them; a rule is turned on together with
 * the change of the service that keeps it.
 */

type Rules = {
  /** A consumer that is made again is another one: from 2.1 on a client that knows only the former consumer cannot write the new one. */
  readonly madeAgain: boolean;
  /** A claim by query may keep what it has, or less, of an inventory that is used beyond its capacity. */
  readonly overcommittedPlaces: boolean;
  /** The answer to the POST of a provider is no 404 where the provider was deleted before the answer was made. */
  readonly shownWhenMade: boolean;
  /** `with` and `apart_from` of GET /allocation_candidates are judged by the snapshot that the answer shows. */
  readonly affinityShown: boolean;
  /** A PUT of a provider with the parent that it has keeps it there, also beside a move to another one. */
  readonly parentProven: boolean;
  /** The answer to a PUT of inventories names classes as they were when it was written. */
  readonly namesAsWritten: boolean;
};

const kept: Rules = {
  madeAgain: true,
  overcommittedPlaces: true,
  shownWhenMade: true,
  affinityShown: true,
  parentProven: true,
  namesAsWritten: true,
};

/** Which of the rules the service keeps. `STRICT=madeAgain,shownWhenMade` turns on some of them, and `STRICT=all` all. */
export const isMended: Rules = withStrict(process.env.STRICT);

function withStrict(list = ''): Rules {
  const names = list.split(',');
  const strict = Object.entries(kept).map(([name, isOn]) => [name, isOn || list === 'all' || names.includes(name)]);
  return Object.fromEntries(strict) as Rules; // with the same keys as above
}
