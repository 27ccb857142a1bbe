/** One mistyped letter in names of up to 7, two in longer ones; in shorter ones than 4 anything would be near. */
const forgiven = (name: string): number => Math.min(2, Math.floor(name.length / 4));

/**
 * The known name that a misspelled one was probably meant to be: the nearest, where one or two letters make the difference, or
 * only their case.
 */
export function nearName(written: string, known: Iterable<string>): string | undefined {
  const distances = [...known].map((name) => ({
    name,
    distance: editDistance(written.toLowerCase(), name.toLowerCase()),
  }));
  const near = distances.filter(({ name, distance }) => distance <= forgiven(name));
  return near.toSorted((one, other) => one.distance - other.distance)[0]?.name;
}

/** How many letters must be added, left out, replaced or swapped with their neighbour to make one text of the other. */
function editDistance(from: string, to: string): number {
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
          at(i - 1, j - 1) + (from[i - 1] === to[j - 1] ? 0 : 1),
          swapped ? at(i - 2, j - 2) + 1 : Number.POSITIVE_INFINITY,
        ),
      );
    }
  }
  return at(from.length, to.length);
}
