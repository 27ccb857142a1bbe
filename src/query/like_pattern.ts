/**
 * What SQL's LIKE matches: `%` is any text and `_` any character, unless a backslash is in front. Case does not count, as on the
 * databases that most clouds use.
 *
 * Each piece between two `%` is looked for once, where it comes first: no later place finds more. One regular expression for
 * all of them would try all places of each, which takes minutes from five wildcards on.
 */
export function likePattern(like: string): { test(text: string): boolean } {
  const [first = '', ...others] = pieces(like);
  const last = others.pop();
  const patterns = [
    `^${first}${last === undefined ? '$' : ''}`,
    ...others.filter((piece) => piece !== ''),
    ...(last === undefined ? [] : [`${last}$`]),
  ].map((pattern) => new RegExp(pattern, 'isu'));
  return {
    test: (text) => {
      let rest = text;
      return patterns.every((pattern) => {
        const found = pattern.exec(rest);
        if (found !== null) rest = rest.slice(found.index + found[0].length);
        return found !== null;
      });
    },
  };
}

/** What is between the `%`, as regular expressions. */
function pieces(like: string): readonly string[] {
  const found = [''];
  for (const [, escaped, wildcard, plain] of like.matchAll(/\\(.)|([%_])|(.)/gsu)) {
    if (wildcard === '%') found.push('');
    else found.push(`${found.pop() ?? ''}${wildcard === '_' ? '.' : literal(escaped ?? plain ?? '')}`);
  }
  return found;
}

const literal = (character: string): string => character.replace(/[\\^$.*+?()[\]{}|/]/u, '\\$&');
