import net from 'node:net';

/**
 * By what clients are told apart where they take turns: their address. Of an IPv6 address it is the first half, since one client mostly
 * has all addresses with the same first half.
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
