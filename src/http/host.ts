/** A host and a port as RFC 3986 has them, in ASCII: an IPv6 address, with or without a zone, or a name or an IPv4 address. */
const hostAndPort = /^(?:\[([\da-f:.]+)(?:%[\w.~%-]+)?\]|([\w.~!$&'()*+,;=%-]+))(:\d*)?$/i;

/**
 * The host of a Host header, and its port if it has one, in the only form that a URL has for it: an IPv6 address in its shortest form
 * and without a zone, a name in small letters, and neither an empty port nor the usual one of the scheme.
 *
 * @returns undefined if the header is no host
 */
export function hostInUrl(header: string, scheme: 'http' | 'https'): string | undefined {
  const [, address, name, port = ''] = hostAndPort.exec(header) ?? [];
  const host = address === undefined ? name : `[${address}]`;
  return host === undefined ? undefined : (URL.parse(`${scheme}://${host}${port}`)?.host ?? undefined);
}
