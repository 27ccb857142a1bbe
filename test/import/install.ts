import { spawnSync } from 'node:child_process';
import { hasPrograms } from '../support/debian_packages.ts';

/** The packages of Debian for a MariaDB server. They start no services, because the tests start what they need. */
export const mariadbPackages: readonly string[] = [
  'mariadb-server-core',
  'mariadb-client-core', // mariadb-install-db needs a program of it
];

/** Whether a MariaDB server is installed in any way, or can be installed. */
export const hasMariadb = (): boolean =>
  hasPrograms(() => spawnSync('mariadbd', ['--version']).status === 0 && findInstallDb(), mariadbPackages);

const findInstallDb = (): boolean => spawnSync('mariadb-install-db', ['--help']).error === undefined;
