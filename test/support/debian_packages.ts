import { execFileSync, spawnSync } from 'node:child_process';

/** How long to wait for other programs that install packages. */
const lockSeconds = 600;

/**
 * Installs missing Debian packages. Test files that run at the same time wait for each other, and all for other programs that install.
 * What was interrupted by others, such as the end of the machine, is completed first.
 *
 * @param downloadWithinMs the time limit for what comes from the archive. Unpacking and configuring have none: a program that is killed
 *   meanwhile leaves packages with which apt-get does nothing more.
 * @throws Error if it is not possible: not as root, not on Debian, or without the archive of Debian
 */
export function install(packages: readonly string[], downloadWithinMs = 600_000): void {
  const missing = () => packages.filter((name) => !isInstalled(name));
  if (missing().length === 0) return;
  console.log(`Installing ${missing().join(' ')}`);
  runLocked('dpkg', ['--configure', '-a']);
  runLocked('apt-get', ['update', '-qq'], downloadWithinMs);
  const wanted = missing();
  if (wanted.length === 0) return;
  const args = ['install', '-y', '-qq', '--no-install-recommends', '-o', `DPkg::Lock::Timeout=${lockSeconds}`];
  runLocked('apt-get', [...args, '--download-only', ...wanted], downloadWithinMs);
  runLocked('apt-get', [...args, ...wanted]);
}

/**
 * Runs a program under a lock of the machine, not of the temporary folder: each run of all tests has one of its own. Where the program
 * finds a lock of another one, for which it cannot wait itself, the installation is retried.
 *
 * @param withinMs when the program is ended; never, if undefined
 */
function runLocked(program: string, args: readonly string[], withinMs?: number): void {
  // In a session of its own: Ctrl-C in the terminal is for the tests, and does not end a package's configuration.
  const [flock, locked] = ['flock', ['--no-fork', '/var/lib/dpkg', program, ...args]] as const;
  const [start, startArgs] = withinMs === undefined ? ['setsid', ['--wait', flock, ...locked]] : [flock, locked];
  const deadlineMs = performance.now() + lockSeconds * 1000;
  for (;;) {
    const { status, error, signal, stderr } = spawnSync(start, startArgs, {
      stdio: ['ignore', 'ignore', 'pipe'],
      encoding: 'utf8',
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C.UTF-8' },
      ...(withinMs === undefined ? {} : { timeout: withinMs }),
    });
    if (error !== undefined) throw error;
    if (status === 0) return;
    if (!/\block\b/.test(stderr) || performance.now() > deadlineMs) {
      throw new Error(`${program} ${args.join(' ')} ended with ${status ?? signal}: ${stderr}`);
    }
    execFileSync('sleep', ['1']);
  }
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
