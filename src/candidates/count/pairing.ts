/**
 * How many there are of each kind: a kind is the set of needs that one of it covers, as bits.
 */
export type Kinds = ReadonlyMap<number, number>;

/** A number that can be reached, and whether it is certain that no larger one can. */
export type Bounded = { readonly count: number; readonly exact: boolean };

/** So many steps are taken for three lists and more, of which the largest number is not found by a rule. */
const mostSteps = 50_000;

/**
 * The largest number of disjoint teams, of one member of each list, that together cover all needs: what consumers of a group without
 * suffix take of each class, where the providers together must have the traits that the group requires.
 *
 * @param needs all of them, as bits
 */
export function mostTeams(lists: readonly Kinds[], needs: number): Bounded {
  const bound = upperBound(lists, needs);
  const [first = new Map<number, number>(), second, third] = lists;
  if (bound === 0 || second === undefined || bitsOf(needs) <= 1) return { count: bound, exact: true };
  if (third === undefined) return { count: mostPairs([...first], [...second], needs), exact: true };
  return search(lists, needs, bound);
}

/**
 * No more than there are in a list, and of those that cover a need one in each team. For one list, and for one need, this many
 * can be reached.
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
    // Breadth first from the kinds that have some left; a step back undoes pairs.
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

/** Three lists and more: tries how often each kind of team is made, until the bound is reached or all was tried. */
function search(lists: readonly Kinds[], needs: number, bound: number): Bounded {
  const left = lists.map((kinds) => new Map(kinds));
  const teams = kindsOfTeams(lists, needs);
  if (teams === undefined) return { count: 0, exact: false };
  let steps = 0;
  let best = 0;
  const descend = (place: number, made: number): void => {
    best = Math.max(best, made);
    const team = teams[place];
    if (team === undefined || best === bound || ++steps > mostSteps) return;
    if (made + upperBound(left, needs) <= best) return;
    const most = Math.min(...team.map((kind, list) => left[list]?.get(kind) ?? 0));
    const take = (times: number): void => {
      for (const [list, kind] of team.entries()) left[list]?.set(kind, (left[list]?.get(kind) ?? 0) - times);
    };
    for (let times = most; times >= 0; times--) {
      take(times);
      descend(place + 1, made + times);
      take(-times);
      if (best === bound || steps > mostSteps) return;
    }
  };
  descend(0, 0);
  return { count: best, exact: best === bound || steps <= mostSteps };
}

/** More kinds of teams than this are not listed. */
const mostKinds = 1000;

/** The kinds of teams that cover all needs, those that cover least more than once before others. */
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
