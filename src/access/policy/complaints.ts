import { nearName } from '../../text/strings.ts';
import { referredRules } from './evaluate.ts';
import { firstOf } from './parse.ts';
import { allDefaults, type Rules } from './rules.ts';

const defaultNames: readonly string[] = allDefaults.map(({ name }) => name);

/** How many of the rules that a rule refers to and that do not exist are named. */
const shownNames = 10;

/**
 * Problems of rules that refer to other rules, and rules without effect, one sentence for each. If there are very many of a
 * kind, there are sentences for the first ones, and one sentence for the rest.
 */
export function ruleComplaints(rules: Rules): readonly string[] {
  const references = new Map([...rules.byName.values()].map(({ name, check }) => [name, referredRules(check)]));
  return [
    ...unusedRules(rules, references),
    ...undefinedRules(references),
    ...firstOf(
      [...namesInCircles(references)],
      (name) => `The policy rule ${name} refers to itself, directly or through other rules, so it denies.`,
      (others) => `${others} more policy rules refer to themselves, so they deny.`,
    ),
  ];
}

type References = ReadonlyMap<string, readonly string[]>;

/**
 * Rules of files that no request and no other rule uses: their names are of older releases or misspelled, so that the
 * default holds instead.
 */
function unusedRules({ byName, settings }: Rules, references: References): readonly string[] {
  const used = new Set([
    settings.policyDefaultRule,
    ...allDefaults.flatMap(({ deprecated }) => deprecated?.name ?? []),
  ]);
  for (const referred of references.values()) for (const name of referred) used.add(name);
  return firstOf(
    [...byName.values()].filter((rule) => rule.default === undefined && !used.has(rule.name)),
    ({ name, file }) => {
      const meant = nearName(name, defaultNames);
      const question = meant === undefined ? '' : ` Did you mean ${meant}?`;
      return `The policy rule ${name} of ${file} has no effect: no request and no other rule asks for it.${question}`;
    },
    (others) => `${others} more policy rules have no effect: no request and no other rule asks for them.`,
  );
}

function undefinedRules(references: References): readonly string[] {
  const referring = [...references].flatMap(([name, referred]) => {
    const missing = referred.filter((other) => !references.has(other));
    return missing.length === 0 ? [] : [{ name, missing }];
  });
  return firstOf(
    referring,
    ({ name, missing }) => {
      const others = missing.length > shownNames ? ` and ${missing.length - shownNames} more` : '';
      return `The policy rule ${name} refers to rules that do not exist: ${missing.slice(0, shownNames).join(', ')}${others}. Define them in a policy file, or leave them out.`;
    },
    (others) => `${others} more policy rules refer to rules that do not exist.`,
  );
}

/** The state of a name during the walk through the references. */
type Visited = {
  readonly name: string;
  /** How many names were visited before it. */
  readonly at: number;
  /** The smallest `at` of all names that are known to be in a circle with this name. */
  lowest: number;
  /** Whether it may still be in one circle with a name that is visited later. */
  isOpen: boolean;
  /** The names that it refers to and that were not looked at yet. */
  readonly rest: Iterator<string>;
};

/**
 * The names that refer to themselves, directly or through other names, in a time that grows with the number of references
 * (Tarjan's strongly connected components, without recursion).
 *
 * @param references the names that each name refers to; names that are not among the keys refer to nothing
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
  /** Closes a name and all names that were opened after it. Each name leads to all others: more than one name form a circle. */
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
