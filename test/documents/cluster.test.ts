/** The README of deploy/cluster documents the values that an operator fills into its files. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const folder = path.join(import.meta.dirname, '..', '..', 'deploy', 'cluster');
const read = (file: string): string => readFileSync(path.join(folder, file), 'utf8');

test('the README of deploy/cluster has each value that its files need, and no others', () => {
  const files = readdirSync(folder).filter((file) => file !== 'README.md');
  const needed = files.flatMap((file) => [...read(file).matchAll(/\$\{(\w+)\}/g)].map(([, name = '']) => name));
  // The names for nodes 2 and 3, and for processes 2 and 3, have the same form as those for 1.
  const named = needed.filter((name) => !/^[NP][23]_/.test(name));
  const table = read('README.md').split('| value | |')[1]?.split('\n\n')[0] ?? '';
  const columns = [...table.matchAll(/^\| (`.*?) \| /gm)].map(([, names = '']) => names).join();
  const documented = [...columns.matchAll(/`([A-Z]\w*_\w+|[A-Z]{4,})`/g)].map(([, name = '']) => name);
  assert.deepEqual(documented.sort(), [...new Set(named)].sort());
});
