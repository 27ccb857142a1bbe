/** What is known of a name on the way through the references. */
type Visited = {
  readonly name: string;
  /** How many names were visited before it. */
  readonly at: number;
  /** The smallest `at` of all names that are known to be in one circle with it. */
  lowest: number;
  /** Whether it may still be in one circle with a name that is visited later. */
  isOpen: boolean;
  /** The names that it refers to and that were not looked at yet. */
  readonly rest: Iterator<string>;
};

/**
 * The names that refer to themselves, directly or through others, in a time that grows with the number of references
 * (Tarjan's strongly connected components, without recursion).
 *
 * @param references the names that each name refers to; others than its keys refer to nothing.
 */
export function namesInCircles(references: ReadonlyMap<string, readonly string[]>): ReadonlySet<string> {
  const visited = new Map<string, Visited>();
  const open: Visited[] = [];
  const found = new Set<string>();
  const visit = (name: string): Visited => {
    const rest = (references.get(name) ?? []).values();
    const begun: Visited = { name, at: visited.size, lowest: visited.size, isOpen: true, rest };
    visited.set(name, begun);
    open.push(begun);
    return begun;
  };
  /** All that are open since the first of them, each of which leads to all others. */
  const close = (first: Visited): void => {
    const members = open.splice(open.lastIndexOf(first));
    for (const member of members) {
      member.isOpen = false;
      if (members.length > 1) found.add(member.name);
    }
  };

  for (const start of references.keys()) {
    if (visited.has(start)) continue;
    const path = [visit(start)];
    for (let last = path.at(-1); last !== undefined; last = path.at(-1)) {
      const { value: referred, done } = last.rest.next();
      if (done !== true) {
        if (referred === last.name) found.add(referred);
        const other = visited.get(referred);
        if (other === undefined) path.push(visit(referred));
        else if (other.isOpen) last.lowest = Math.min(last.lowest, other.at);
        continue;
      }
      path.pop();
      const before = path.at(-1);
      if (before !== undefined) before.lowest = Math.min(before.lowest, last.lowest);
      if (last.lowest === last.at) close(last);
    }
  }
  return found;
}
