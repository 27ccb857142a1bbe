/**
 * What SQL's LIKE matches, as a regular expression: `%` is any text and `_` any character, unless a backslash is in front. Case
 * does not count, as on the databases that most clouds use.
 */
export function likePattern(like: string): RegExp {
  const parts = [...like.matchAll(/\\(.)|([%_])|(.)/gsu)].map(([, escaped, wildcard, plain]) =>
    wildcard === undefined
      ? (escaped ?? plain ?? '').replace(/[\\^$.*+?()[\]{}|/]/u, '\\$&')
      : wildcard === '%'
        ? '.*'
        : '.',
  );
  return new RegExp(`^${parts.join('')}$`, 'isu');
}
