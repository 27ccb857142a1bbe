/** Changes a policy file while this process can open no file, asks the policy then and later, and prints what it allowed. */
import { closeSync, openSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { openPolicy } from '../../src/access/policy/policy.ts';
import { identity } from './people.ts';

const [folder = '', policyFile = ''] = process.argv.slice(2);
const errors: string[] = [];
const settings = {
  policyFile,
  policyDirs: [],
  policyDefaultRule: 'default',
  enforceScope: true,
  enforceNewDefaults: true,
};
const log = { info: () => {}, warn: () => {}, error: (line: string) => void errors.push(line) };
const policy = openPolicy(settings, log, 0);
const allowed = (): readonly string[] =>
  ['x', 'y'].filter((role) => policy.allows('placement:traits:list', identity({ roles: [role] }), {}));

const other = path.join(folder, 'other.yaml');
writeFileSync(other, '"placement:traits:list": role:y\n');
// So old that the file is not read again for being new.
utimesSync(other, 1000, 1000);
allowed();
const opened: number[] = [];
try {
  for (;;) opened.push(openSync(policyFile, 'r'));
} catch {
  // No more can be opened.
}
renameSync(other, policyFile);
const during = allowed();
for (const descriptor of opened) closeSync(descriptor);
console.log(JSON.stringify({ during, after: allowed(), errors }));
