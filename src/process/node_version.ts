/*
 * To be imported before everything else by what people start: older versions of Node.js install the package, and then lack what
 * the rest of it needs, at some point and with a stack. So this may use nothing that is new.
 */

/** The oldest major version that the tests run on. */
const oldest = 22;

const program = (process.argv[1] ?? 'placement').replace(/^.*[/\\]|\.[jt]s$/g, '');
if (Number(process.versions.node.split('.')[0]) < oldest) {
  console.error(
    `${program}: This is Node.js ${process.versions.node}, which is too old: ${oldest} or newer is needed, such as the one that ` +
      '"npm install" brings into a checkout, node_modules/.bin/node.',
  );
  // 1 and 2 are results of placement-status.
  process.exit(program === 'placement-status' ? 255 : 1);
}
