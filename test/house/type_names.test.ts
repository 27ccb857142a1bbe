/** A name of a type means one thing: the reader of a file need not ask which of several types is meant. */
import assert from 'node:assert/strict';
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';

const project = path.join(import.meta.dirname, '..', '..');

/** The client is a program of its own: no type of the client is used in the service, so a name may stand in both. */
const client = ['src/client', 'src/cli', 'src/demo'];
const ofClient = (file: string): boolean => client.some((folder) => file.startsWith(`${folder}/`));
const sources = globSync('{src,db}/**/*.ts', { cwd: project });

for (const [program, files] of [
  ['the client', sources.filter(ofClient)],
  ['the service', sources.filter((file) => !ofClient(file))],
] as const) {
  test(`no type name of ${program} is declared in two files`, () => {
    const declared = files.flatMap((file) => {
      const text = readFileSync(path.join(project, file), 'utf8');
      return Array.from(text.matchAll(/^(?:export )?(?:type|interface|class) (\w+)/gm), ([, name = '']) => ({
        name,
        file,
      }));
    });
    assert.ok(declared.length > 50, `only ${declared.length} types were found`);
    const twice = [...Map.groupBy(declared, ({ name }) => name)].filter(([, ofName]) => ofName.length > 1);
    assert.deepEqual(
      twice.map(([name, ofName]) => `${name}: ${ofName.map(({ file }) => file).join(', ')}`),
      [],
    );
  });
}
