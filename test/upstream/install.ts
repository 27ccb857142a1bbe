import { type ExecFileSyncOptions, execFileSync, spawnSync } from 'node:child_process';

/*
 * Installs what the tests beside this file need, where it is missing: the real OpenStack Placement of Debian with what serves it,
 * and a MariaDB server. Only packages without services of their own: the tests start what they need.
 */

const packages = [
  'python3-placement',
  'python3-psycopg2',
  'python3-pymysql',
  'gunicorn',
  'mariadb-server-core',
  'mariadb-client-core', // mariadb-install-db needs a program of it
];

const isInstalled = (name: string): boolean => {
  const { stdout } = spawnSync('dpkg-query', ['--status', name], { encoding: 'utf8' });
  return stdout?.includes('install ok installed') ?? false;
};

const quietly: ExecFileSyncOptions = {
  stdio: ['ignore', 'ignore', 'inherit'],
  env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
};

const missing = packages.filter((name) => !isInstalled(name));
if (missing.length > 0) {
  console.log(`Installing ${missing.join(' ')}`);
  try {
    execFileSync('apt-get', ['update', '-qq'], quietly);
    execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], quietly);
  } catch (error) {
    console.error(`These packages of Debian are missing: ${missing.join(' ')}. Install them as root. ${error}`);
    process.exit(1);
  }
}
