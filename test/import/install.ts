import { type ExecFileSyncOptions, execFileSync, spawnSync } from 'node:child_process';

/** The packages of Debian for a MariaDB server. They start no services, because the tests start what they need. */
export const mariadbPackages: readonly string[] = [
  'mariadb-server-core',
  'mariadb-client-core', // mariadb-install-db needs a program of it
];

/**
 * Installs the packages of Debian that are missing.
 *
 * @param withinMs for how long apt-get is given a try
 * @throws Error where that is not possible: not as root, not on Debian, or without its archive
 */
export function install(packages: readonly string[], withinMs = 600_000): void {
  const missing = packages.filter((name) => !isInstalled(name));
  if (missing.length === 0) return;
  console.log(`Installing ${missing.join(' ')}`);
  const quietly: ExecFileSyncOptions = {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    timeout: withinMs,
  };
  execFileSync('apt-get', ['update', '-qq'], quietly);
  execFileSync('apt-get', ['install', '-y', '-qq', '--no-install-recommends', ...missing], quietly);
}

function isInstalled(name: string): boolean {
  const { stdout } = spawnSync('dpkg-query', ['--status', name], { encoding: 'utf8' });
  return stdout?.includes('install ok installed') ?? false;
}

/** Whether a MariaDB server is installed in any way, or can be installed. */
export function hasMariadb(): boolean {
  const isThere = () => spawnSync('mariadbd', ['--version']).status === 0 && findInstallDb();
  if (isThere()) return true;
  if (process.getuid?.() !== 0) return false;
  try {
    install(mariadbPackages, 60_000);
  } catch {
    return false;
  }
  return isThere();
}

const findInstallDb = (): boolean => spawnSync('mariadb-install-db', ['--help']).error === undefined;
