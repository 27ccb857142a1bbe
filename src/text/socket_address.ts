const unixScheme = 'unix:';

/** The file of the UNIX socket that an address names, as `unix:/run/placement.sock`; undefined if it is another address. */
export const socketFileOf = (address: string): string | undefined =>
  address.startsWith(unixScheme) ? address.slice(unixScheme.length) : undefined;

/** The longest name of a socket in bytes, without the 0 at its end: 104 with it on macOS, 108 on Linux. */
const maxSocketBytes = 103;

/** Why this cannot be the file of a socket; undefined if it can. */
export function socketProblem(file: string): string | undefined {
  if (!/^\/.*[^/]$/.test(file)) {
    return 'must be unix: and the absolute name of a file, such as unix:/run/placement/placement.sock';
  }
  const bytes = Buffer.byteLength(file);
  return bytes <= maxSocketBytes
    ? undefined
    : `must name a socket by at most ${maxSocketBytes} bytes, and its name has ${bytes}`;
}
