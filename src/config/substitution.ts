// Python's string.Template with oslo.config's names, which may hold dots: `$name.` is the name "name.".
const reference = /\$(?:(\$)|([_a-z][._a-z0-9]*)|\{([_a-z][._a-z0-9]*)\})/gi;

/**
 * Replaces `$option`, `${option}`, `$group.option` and `${group.option}`; `$$` and `\$` are a dollar sign. A name that
 * `lookup` does not know stays as it is written, so that a `$` in a password survives.
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

/** Writes a text so that `substitute` gives it back. `$$` would not do behind a backslash. */
export const escapeDollars = (text: string): string => text.replaceAll('$', () => '\\$');
