// Python's string.Template with oslo.config's names. Names may hold dots: `$name.` refers to the name "name.".
const reference = /\$(?:(\$)|([_a-z][._a-z0-9]*)|\{([_a-z][._a-z0-9]*)\})/gi;

/**
 * Replaces `$option`, `${option}`, `$group.option` and `${group.option}`. `$$` and `\$` become a dollar sign. A name
 * that `lookup` does not know stays as written, so that a `$` in a password is kept.
 *
 * @param lookup gets `option` or `group.option`.
 */
export function substitute(text: string, lookup: (name: string) => string | undefined): string {
  return text
    .replaceAll('\\$', () => '$$')
    .replace(reference, (match, dollar: string | undefined, plain: string | undefined, braced: string | undefined) => {
      if (dollar !== undefined) return '$';
      const name = plain ?? braced;
      return (name === undefined ? undefined : lookup(name)) ?? match;
    });
}

/** Escapes a text so that `substitute` returns the original. It writes `\$`, because `$$` fails after a backslash. */
export const escapeDollars = (text: string): string => text.replaceAll('$', () => '\\$');
