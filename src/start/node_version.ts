/*
 * Each program imports this before everything else. Older versions of Node.js can install the package, but would fail
 * later with a stack, because they lack features that the other files need. So this file may use no new features.
 */

/** The first version with all that is used. */
const oldest = '22.13';
const [oldestMajor = 0, oldestMinor = 0] = oldest.split('.').map(Number);
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);

const program = (process.argv[1] ?? 'placement').replace(/^.*[/\\]|\.[jt]s$/g, '');
if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  console.error(
    `${program}: This is Node.js ${process.versions.node}, which is too old. Use ${oldest} or newer, such as the one that ` +
      '"npm ci" brings into a checkout, node_modules/.bin/node.',
  );
  // The environment is wrong. For placement-status the exit codes 1 and 2 are results of the checks.
  process.exit(program === 'placement-status' ? 255 : 2);
}
