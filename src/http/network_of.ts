import net from 'node:net';

/**
 * What tells clients apart where they take turns: the address of the client, or of an IPv6 address the first half, since whoever has
 * one such address mostly has all others with that half.
 *
 * @param client as the connection or a proxy has it: `10.1.2.3`, `::ffff:10.1.2.3`, `10.1.2.3:4711`, `[2001:db8::1]:4711`
 */
export function networkOf(client: string | undefined): string {
  const [, version4] = /^(\d+\.\d+\.\d+\.\d+)(?::\d+)?$/.exec(client ?? '') ?? [];
  if (version4 !== undefined) return version4;
  const [, address = ''] = /^\[?([^\]%]*)/.exec(client ?? '') ?? [];
  if (!net.isIPv6(address)) return client ?? '';
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1];
  if (mapped !== undefined) return mapped;
  const [before = '', after] = (URL.parse(`http://[${address}]`)?.hostname ?? '').slice(1, -1).split('::');
  const first = before === '' ? [] : before.split(':');
  const last = after === undefined || after === '' ? [] : after.split(':');
  const zeros = after === undefined ? 0 : 8 - first.length - last.length;
  return `${[...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4).join(':')}::/64`;
}
