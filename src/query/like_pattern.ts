/**
 * What SQL's LIKE matches: `%` is any text and `_` any character, unless a backslash is in front. Case does not count, as on the
 * databases that most clouds use.
 *
 * Each piece between two `%` is looked for once, where it comes first: no later place finds more. One regular expression for
 * all of them would try all places of each, which takes minutes from five wildcards on. The expressions are made
 * only for a text that is long enough to match, since V8 refuses to make one of 100,000 characters.
 */
export function likePattern(like: string): { test(text: string): boolean } {
  const parts = pieces(like);
  const shortest = parts.reduce((sum, piece) => sum + piece.length, 0);
  let patterns: readonly RegExp[] | undefined;
  return {
    test: (text) => {
      if (text.length < shortest) return false;
      patterns ??= patternsOf(parts);
      let rest = text;
      return patterns.every((pattern) => {
        const found = pattern.exec(rest);
        if (found !== null) rest = rest.slice(found.index + found[0].length);
        return found !== null;
      });
    },
  };
}

function patternsOf(parts: readonly Piece[]): readonly RegExp[] {
  const [first = '', ...others] = parts.map((piece) => piece.join(''));
  const last = others.pop();
  return [
    `^${first}${last === undefined ? '$' : ''}`,
    ...others.filter((piece) => piece !== ''),
    ...(last === undefined ? [] : [`${last}$`]),
  ].map((pattern) => new RegExp(pattern, 'isu'));
}

/** What stands between two `%`: a regular expression for each character. */
type Piece = readonly string[];

function pieces(like: string): readonly Piece[] {
  let open: string[] = [];
  const found = [open];
  for (const [, escaped, wildcard, plain] of like.matchAll(/\\(.)|([%_])|(.)/gsu)) {
    if (wildcard === '%') {
      open = [];
      found.push(open);
    } else open.push(wildcard === '_' ? '.' : literal(escaped ?? plain ?? ''));
  }
  return found;
}

const literal = (character: string): string => character.replace(/[\\^$.*+?()[\]{}|/]/u, '\\$&');
