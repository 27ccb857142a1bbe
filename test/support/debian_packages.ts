import { type ExecFileSyncOptions, execFileSync, spawnSync } from 'node:child_process';

/**
 * Installs missing Debian packages. Test files that run at the same time wait for each other.
 *
 * @param withinMs the time limit for apt-get
 * @throws Error if it is not possible: not as root, not on Debian, or without the archive of Debian
 */
export function install(packages: readonly string[], withinMs = 600_000): void {
  const missing = () => packages.filter((name) => !isInstalled(name));
  if (missing().length === 0) return;
  console.log(`Installing ${missing().join(' ')}`);
  const quietly: ExecFileSyncOptions = {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    timeout: withinMs,
  };
  // Of the machine, not of the temporary folder: each run of all tests has one of its own. apt-get itself locks with fcntl.
  const locked = (...args: readonly string[]) => execFileSync('flock', ['/var/lib/dpkg', 'apt-get', ...args], quietly);
  locked('update', '-qq');
  const wanted = missing();
  if (wanted.length > 0) locked('install', '-y', '-qq', '--no-install-recommends', ...wanted);
}

/** Whether programs are there, or come with packages of Debian, which are installed if these tests run as root. */
export function hasPrograms(areThere: () => boolean, packages: readonly string[]): boolean {
  if (areThere()) return true;
  if (process.getuid?.() !== 0) return false;
  try {
    install(packages, 60_000);
  } catch {
    return false;
  }
  return areThere();
}

function isInstalled(name: string): boolean {
  const { stdout } = spawnSync('dpkg-query', ['--status', name], { encoding: 'utf8' });
  return stdout?.includes('install ok installed') ?? false;
}
