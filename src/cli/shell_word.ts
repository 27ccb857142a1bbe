/** A value as one word of a command line: in quotes where a shell would read it otherwise. */
export const shellWord = (text: string): string =>
  /^[\p{L}\p{N}_@%+=:,./-]+$/u.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
