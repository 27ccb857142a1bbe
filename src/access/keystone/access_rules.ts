import type { Token } from './token.ts';

/** The method and path of a request, which access rules allow or not. */
export type Access = { readonly method: string; readonly path: string };

/**
 * Whether the access rules of an application credential allow a request to this service. All rules together may take `mostSteps`; if no
 * rule has allowed the request by then, it is refused.
 *
 * @param serviceType the type of this service; where it is unknown, tokens with access rules are refused.
 * @param forService whether a service sends the request on behalf of the user: the access rules then allowed the user's
 *   own request to that service, of which this one is a part.
 */
export function isAccessAllowed(
  { accessRules, serviceTypes }: Token,
  access: Access,
  serviceType: string | undefined,
  forService: boolean,
): boolean {
  if (accessRules === undefined) return true;
  if (serviceType === undefined) return false;
  if (serviceTypes !== undefined && !serviceTypes.includes(serviceType)) return false;
  const steps: Steps = { left: mostSteps };
  return (
    forService ||
    accessRules.some(
      ({ method, path, service }) =>
        method === access.method && service === serviceType && matchesRule(path, access.path, steps),
    )
  );
}

/** The steps that comparisons may still take. One is a character of a rule, or of a path with 32 positions of a rule: some nanoseconds. */
export type Steps = { left: number };

/** How many steps the access rules of one request may take together, some 10 ms. Ordinary ones take a few hundred. */
export const mostSteps = 1_000_000;

/** A character, any characters of one segment of a path (at least one), or any characters at all (also none). */
type RulePart = { readonly code: number } | 'in segment' | 'anything';

/** The parts of a rule: `{name}` and `*` are characters of a segment, `**` is anything. */
function partsOf(rule: string): readonly RulePart[] {
  const parts: RulePart[] = [];
  for (let at = 0; at < rule.length; at += 1) {
    const end = rule[at] === '{' ? rule.indexOf('}', at) : -1;
    if (end !== -1) {
      parts.push('in segment');
      at = end;
    } else if (rule.startsWith('**', at)) {
      // Two of them one after the other are the same as one.
      if (parts.at(-1) !== 'anything') parts.push('anything');
      at += 1;
    } else parts.push(rule[at] === '*' ? 'in segment' : { code: rule.charCodeAt(at) });
  }
  return parts;
}

const slash = '/'.charCodeAt(0);

/**
 * Whether a path matches a rule. Users write the rules, and a regular expression could take hours for some of them. So all positions of
 * the rule that the path may have reached are followed at once, each as one bit: position n is reached when the first n parts are matched.
 *
 * @param steps is reduced; where none are left, the path does not match
 */
export function matchesRule(rule: string, path: string, steps: Steps): boolean {
  steps.left -= rule.length;
  const parts = partsOf(rule);
  const words = (parts.length >>> 5) + 1;
  const none = new Uint32Array(words);
  const inSegment = new Uint32Array(words);
  const anything = new Uint32Array(words);
  const characters = new Map<number, Uint32Array>();
  for (const [position, part] of parts.entries()) {
    const positions = part === 'in segment' ? inSegment : part === 'anything' ? anything : positionsOf(part.code);
    setBit(positions, position);
  }
  function positionsOf(code: number): Uint32Array {
    const positions = characters.get(code) ?? new Uint32Array(words);
    characters.set(code, positions);
    return positions;
  }

  let reached = new Uint32Array(words);
  let next = new Uint32Array(words);
  setBit(reached, 0);
  if (parts[0] === 'anything') setBit(reached, 1);
  for (let at = 0; at < path.length; at += 1) {
    steps.left -= words;
    if (steps.left < 0) return false;
    const code = path.charCodeAt(at);
    const sameCharacter = characters.get(code) ?? none;
    const withinSegment = code === slash ? none : inSegment;
    // The text from the last position of a word to the first position of the next word.
    let [moved, skipped, isAnywhere] = [0, 0, 0];
    for (let word = 0; word < words; word += 1) {
      const here = reached[word] ?? 0;
      const staying = here & (withinSegment[word] ?? 0);
      const moving = staying | (here & (sameCharacter[word] ?? 0));
      const found = staying | (here & (anything[word] ?? 0)) | (moving << 1) | moved;
      // 'anything' also matches nothing, so the next position is reached as well. Two such parts never follow each other.
      const skipping = found & (anything[word] ?? 0);
      const all = found | (skipping << 1) | skipped;
      next[word] = all;
      isAnywhere |= all;
      moved = moving >>> 31;
      skipped = skipping >>> 31;
    }
    if (isAnywhere === 0) return false;
    [reached, next] = [next, reached];
  }
  return ((reached[parts.length >>> 5] ?? 0) & (1 << (parts.length & 31))) !== 0;
}

/** A typed array has no element beyond its end: there, this does nothing. */
function setBit(words: Uint32Array, bit: number): void {
  const word = bit >>> 5;
  words[word] = (words[word] ?? 0) | (1 << (bit & 31));
}
