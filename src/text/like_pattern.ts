/**
 * Matches texts as SQL's LIKE does: `%` is any text and `_` any character, unless a backslash is in front. Upper and
 * lower case are the same, as in the databases that most clouds use.
 *
 * Each piece between two `%` is searched for once, and its first position is taken: a later one never helps. One regular
 * expression for all pieces would try all positions of each piece, which takes minutes from five wildcards on. The expressions
 * are made only for a text that is long enough to match, since V8 refuses one of 100,000 characters.
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

function patternsOf(parts: readonly PatternPiece[]): readonly RegExp[] {
  const [first = '', ...others] = parts.map((piece) => piece.join(''));
  const last = others.pop();
  return [
    `^${first}${last === undefined ? '$' : ''}`,
    ...others.filter((piece) => piece !== ''),
    ...(last === undefined ? [] : [`${last}$`]),
  ].map((pattern) => new RegExp(pattern, 'isu'));
}

/** The piece between two `%`: a regular expression for each character. */
type PatternPiece = readonly string[];

function pieces(like: string): readonly PatternPiece[] {
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
