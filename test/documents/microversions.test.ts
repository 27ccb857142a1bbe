/** docs/microversions.md is made of the lists in the code. `UPDATE=1 npm test -- test/documents/microversions` writes it. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { changes } from '../../src/placement/microversions.ts';

const file = path.join(import.meta.dirname, '..', '..', 'docs', 'microversions.md');

/** The lists hold tuples of two or three texts. */
const versions: readonly (readonly [version: string, text: string, breaks?: string])[] = Object.values(changes);

const tableOf = (major: string): string =>
  versions
    .filter(([version]) => version.startsWith(`${major}.`))
    .map(([version, text, breaks = '']) => `| ${version} | ${text.replaceAll('|', '\\|')} | ${breaks} |\n`)
    .join('');

const page = `# Microversions

A request names the version that it is written for: \`OpenStack-API-Version: placement 2.6\`. A request that names none gets 1.0, or
\`[api] default_version\`. Each version has what the versions before it have, so a client may name any version that it knows and continue with it.
The last column says what a client of the version before must change.

## Version 2: of this service

2.0 is the same as OpenStack's 1.39. From 2.1 on what OpenStack's versions ignore is refused: a parameter or a key that comes twice, and parameters of an operation that has none. [differences.md](differences.md) has the details.

| version | what it changed | what can break |
| --- | --- | --- |
${tableOf('2')}
## Version 1: of OpenStack

\`latest\` is the newest of these.

| version | what it changed | what can break |
| --- | --- | --- |
${tableOf('1')}`;

test('docs/microversions.md has every version of the lists in the code', async () => {
  if (process.env.UPDATE !== undefined) await writeFile(file, page);
  assert.equal(await readFile(file, 'utf8'), page);
});
