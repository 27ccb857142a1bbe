/**
 * How many members of a list there are of each kind. The kind of a member is the set of needs that it covers, as bits.
 */
export type Kinds = ReadonlyMap<number, number>;

/** A number that can be reached, and whether it is certain that no larger one can. */
export type Bounded = { readonly count: number; readonly exact: boolean };

/**
 * How many steps the search may take with three or more lists, for which there is no rule, and how many members of lists all these
 * steps may look at: some 10 ms.
 */
const [mostSteps, mostLookedAt] = [50_000, 1_000_000];
/** With so many kinds in two lists, some 10 ms, pairs are not counted by a flow. */
const mostKindsOfPairs = 10_000;

/**
 * The largest number of teams that can exist at the same time. A team has one member of each list, and its members
 * together cover all needs. Here a team is a consumer of the group without suffix. It has a list for each class, whose
 * members are the amounts that providers can give; the needs are the required traits, which the providers of the team
 * must have together.
 *
 * @param needs all needs, as bits
 */
export function mostTeams(lists: readonly Kinds[], needs: number): Bounded {
  const bound = upperBound(lists, needs);
  const [first = new Map<number, number>(), second, third] = lists;
  if (bound === 0 || second === undefined || bitsOf(needs) <= 1) return { count: bound, exact: true };
  if (third === undefined) {
    if (first.size * second.size > mostKindsOfPairs) return { count: 0, exact: false };
    return { count: mostPairs([...first], [...second], needs), exact: true };
  }
  return search(lists, needs, bound);
}

/**
 * An upper bound: each team needs a member of each list, and for each need a member that covers it. With one list, or
 * with one need, it is exact.
 */
function upperBound(lists: readonly Kinds[], needs: number): number {
  if (lists.length === 1)
    return lists[0]?.entries().reduce((sum, [kind, count]) => sum + (kind === needs ? count : 0), 0) ?? 0;
  let bound = Math.min(...lists.map((kinds) => sumOf(kinds.values())));
  for (let need = 1; need <= needs; need *= 2) {
    if ((needs & need) === 0) continue;
    const covering = lists.map((kinds) =>
      sumOf(kinds.entries().map(([kind, count]) => ((kind & need) === 0 ? 0 : count))),
    );
    bound = Math.min(bound, sumOf(covering));
  }
  return bound;
}

const sumOf = (numbers: Iterable<number>): number => Iterator.from(numbers).reduce((sum, number) => sum + number, 0);

type Listed = readonly (readonly [kind: number, count: number])[];

/** The largest number of pairs that cover all needs: a flow from the kinds of one list to those of the other. */
function mostPairs(left: Listed, right: Listed, needs: number): number {
  const leftRoom = left.map(([, count]) => count);
  const rightRoom = right.map(([, count]) => count);
  const flow = left.map(() => right.map(() => 0));
  let pairs = 0;
  for (;;) {
    // Breadth first from the kinds that have members left; a step back dissolves pairs.
    const cameFrom = new Map<number, number>();
    const leftSeen = new Map<number, number>();
    const open = leftRoom.flatMap((room, place) => (room > 0 ? [place] : []));
    for (const place of open) leftSeen.set(place, -1);
    let end = -1;
    for (const from of open) {
      for (const [to, [kind]] of right.entries()) {
        if (cameFrom.has(to) || (((left[from]?.[0] ?? 0) | kind) & needs) !== needs) continue;
        cameFrom.set(to, from);
        if ((rightRoom[to] ?? 0) > 0) {
          end = to;
          break;
        }
        for (const [back, row] of flow.entries()) {
          if ((row[to] ?? 0) === 0 || leftSeen.has(back)) continue;
          leftSeen.set(back, to);
          open.push(back);
        }
      }
      if (end !== -1) break;
    }
    if (end === -1) return pairs;
    const way: { readonly from: number; readonly to: number; readonly back: number }[] = [];
    for (let to = end; to !== -1; ) {
      const from = cameFrom.get(to) ?? -1;
      const back = leftSeen.get(from) ?? -1;
      way.push({ from, to, back });
      to = back;
    }
    const start = way.at(-1)?.from ?? -1;
    const least = Math.min(
      rightRoom[end] ?? 0,
      leftRoom[start] ?? 0,
      ...way.flatMap(({ from, back }) => (back === -1 ? [] : [flow[from]?.[back] ?? 0])),
    );
    for (const { from, to, back } of way) {
      const row = flow[from];
      if (row === undefined) continue;
      row[to] = (row[to] ?? 0) + least;
      if (back !== -1) row[back] = (row[back] ?? 0) - least;
    }
    rightRoom[end] = (rightRoom[end] ?? 0) - least;
    leftRoom[start] = (leftRoom[start] ?? 0) - least;
    pairs += least;
  }
}

/** For three lists and more: tries how often to make each kind of team, until the bound is reached or all is tried. */
function search(lists: readonly Kinds[], needs: number, bound: number): Bounded {
  const left = lists.map((kinds) => new Map(kinds));
  const teams = kindsOfTeams(lists, needs);
  if (teams === undefined) return { count: 0, exact: false };
  const perStep = sumOf(lists.map(({ size }) => size)) * (1 + bitsOf(needs));
  const most = Math.min(mostSteps, Math.ceil(mostLookedAt / perStep));
  let steps = 0;
  let best = 0;
  const descend = (place: number, made: number): void => {
    best = Math.max(best, made);
    const team = teams[place];
    if (team === undefined || best === bound || ++steps > most) return;
    if (made + upperBound(left, needs) <= best) return;
    const fitting = Math.min(...team.map((kind, list) => left[list]?.get(kind) ?? 0));
    const take = (times: number): void => {
      for (const [list, kind] of team.entries()) left[list]?.set(kind, (left[list]?.get(kind) ?? 0) - times);
    };
    for (let times = fitting; times >= 0; times--) {
      take(times);
      descend(place + 1, made + times);
      take(-times);
      if (best === bound || steps > most) return;
    }
  };
  descend(0, 0);
  return { count: best, exact: best === bound || steps <= most };
}

/** How many kinds of teams are listed at most. */
const mostKinds = 1000;

/** The kinds of teams that cover all needs, first those that cover few needs twice; undefined if there are too many. */
function kindsOfTeams(lists: readonly Kinds[], needs: number): readonly (readonly number[])[] | undefined {
  let teams: readonly (readonly number[])[] = [[]];
  for (const kinds of lists) {
    teams = teams.flatMap((team) => [...kinds.keys()].map((kind) => [...team, kind]));
    if (teams.length > mostKinds) return undefined;
  }
  const covered = (team: readonly number[]): number => team.reduce((all, kind) => all | kind, 0) & needs;
  const waste = (team: readonly number[]): number => sumOf(team.map((kind) => bitsOf(kind & needs)));
  return teams.filter((team) => covered(team) === needs).sort((a, b) => waste(a) - waste(b));
}

function bitsOf(kind: number): number {
  let bits = 0;
  for (let rest = kind; rest !== 0; rest &= rest - 1) bits++;
  return bits;
}
