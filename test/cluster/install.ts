import { install } from '../support/debian_packages.ts';

/* Installs what the cluster consists of, where it is missing. */

const packages = ['patroni', 'etcd-server', 'python3-etcd', 'python3-idna', 'haproxy', 'pgbouncer', 'postgresql'];

try {
  if (process.getuid?.() !== 0) throw new Error('The cluster is started as root, which becomes postgres.');
  install(packages);
} catch (error) {
  console.error(`The cluster needs root, and these packages of Debian: ${packages.join(' ')}. ${error}`);
  process.exit(1);
}
