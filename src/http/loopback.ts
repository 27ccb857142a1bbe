import net from 'node:net';

const loopback = new net.BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether a host in a configuration or a URL is an address or a name by which a machine reaches only itself. */
export function isLoopback(host: string): boolean {
  const family = net.isIP(host);
  if (family !== 0) return loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
  const name = host.toLowerCase();
  return name === 'localhost' || name.endsWith('.localhost');
}
