import { mariadbPackages } from '../import/install.ts';
import { install } from '../support/debian_packages.ts';

/*
 * Installs what the tests beside this file need, where it is missing: the real OpenStack Placement and Keystone of Debian with what serves
 * them, clients of OpenStack, and a MariaDB server.
 */

const packages = [
  'python3-ironicclient',
  'python3-keystone',
  'python3-openstackclient',
  'python3-openstacksdk',
  'python3-osc-placement',
  'python3-placement',
  'python3-psycopg2',
  'python3-pymysql',
  'gunicorn',
  ...mariadbPackages,
];

try {
  install(packages);
} catch (error) {
  console.error(`Packages of Debian are missing. Install them as root: ${packages.join(' ')}. ${error}`);
  process.exit(1);
}
