/** One mistyped letter in names of up to 7, two in longer ones. */
const forgiven = (name: string): number => (name.length < 8 ? 1 : 2);

/** In names of up to 3 letters another letter makes another word: `sql` is not meant to be `ssl`. */
const costOfReplacing = (name: string): number => (name.length < 4 ? 2 : 1);

/**
 * The known name that a misspelled one was probably meant to be: the nearest, where one or two letters make the difference, or
 * only their case. In the shortest names it is a letter too many or too few, or two that are swapped.
 */
export function nearName(written: string, known: Iterable<string>): string | undefined {
  const distances = [...known].map((name) => ({
    name,
    distance: editDistance(written.toLowerCase(), name.toLowerCase(), costOfReplacing(name)),
  }));
  const near = distances.filter(({ name, distance }) => distance <= forgiven(name));
  return near.toSorted((one, other) => one.distance - other.distance)[0]?.name;
}

/**
 * How many letters must be added, left out, replaced or swapped with their neighbour to make one text of the other.
 *
 * @param replacing as how many a replaced letter counts
 */
function editDistance(from: string, to: string, replacing: number): number {
  // rows[i][j] is the distance of the first i letters of one to the first j of the other.
  const rows = [Array.from({ length: to.length + 1 }, (_, length) => length)];
  const at = (i: number, j: number): number => rows[i]?.[j] ?? Number.POSITIVE_INFINITY;
  for (let i = 1; i <= from.length; i += 1) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= to.length; j += 1) {
      const swapped = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      row.push(
        Math.min(
          at(i - 1, j) + 1,
          at(i, j - 1) + 1,
          at(i - 1, j - 1) + (from[i - 1] === to[j - 1] ? 0 : replacing),
          swapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return at(from.length, to.length);
}
