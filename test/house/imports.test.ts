/** Which files import which: so that the reader of a file needs to know only what is below it. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite, test } from 'node:test';

const project = path.join(import.meta.dirname, '..', '..');

/** The layers, from the top: a file imports only files of the same layer and of lower layers. */
const layers = [
  'src/bin',
  'src/workers',
  'src/manage',
  'src/start',
  'src/compute',
  'src/http',
  'src/metrics',
  'src/api',
  'src/access',
  'src/claims',
  'src/search',
  'src/fleet',
  'src/queue',
  'src/log',
  'src/config',
  'src/rest',
  'src/console',
  'src/request',
  'src/cli',
  'src/demo',
  'src/client',
  'src/placement',
  'src/text',
  'db/online',
  'db/statements',
  'db/fleet',
  'db/schema',
  'db/engine',
  'db',
];

const layerOf = (file: string): string => path.dirname(file).split('/').slice(0, 2).join('/');

/** By file, the files that it imports, also those of which it imports only types. */
const imports = new Map(
  ['src', 'db']
    .flatMap((folder) =>
      readdirSync(path.join(project, folder), { recursive: true, encoding: 'utf8' }).map((file) => `${folder}/${file}`),
    )
    .filter((file) => file.endsWith('.ts'))
    .map((file) => {
      const text = readFileSync(path.join(project, file), 'utf8');
      const found = text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g);
      return [file, Array.from(found, ([, to = '']) => path.posix.join(path.dirname(file), to))] as const;
    }),
);

/** The files of a circle of imports that begins at a file; undefined if there is none. */
function circleFrom(file: string, way: readonly string[], done: Set<string>): readonly string[] | undefined {
  const start = way.indexOf(file);
  if (start !== -1) return [...way.slice(start), file];
  if (done.has(file)) return undefined;
  for (const imported of imports.get(file) ?? []) {
    const circle = circleFrom(imported, [...way, file], done);
    if (circle !== undefined) return circle;
  }
  done.add(file);
  return undefined;
}

suite('imports', () => {
  test('each file belongs to a layer', () => {
    const found = new Set(Array.from(imports.keys(), layerOf));
    assert.deepEqual([...found].toSorted(), layers.toSorted());
  });

  test('imports point to the same layer, or to a lower one', () => {
    const upwards = Array.from(imports, ([file, list]) =>
      list
        .filter((imported) => layers.indexOf(layerOf(imported)) < layers.indexOf(layerOf(file)))
        .map((imported) => `${file} imports ${imported}`),
    ).flat();
    assert.deepEqual(upwards, []);
  });

  test('the search knows neither HTTP nor query strings', () => {
    const known = ['src/search', 'src/fleet', 'src/request', 'src/placement'];
    const others = Array.from(imports, ([file, list]) =>
      layerOf(file) === 'src/search' ? list.filter((imported) => !known.includes(layerOf(imported))) : [],
    ).flat();
    assert.deepEqual(others, []);
  });

  test('imports make no circle, also not of types', () => {
    const done = new Set<string>();
    for (const file of imports.keys()) assert.deepEqual(circleFrom(file, [], done), undefined);
  });

  test('no file only exports again what another file exports', () => {
    const forwarding = Array.from(imports.keys()).filter((file) => {
      const lines = readFileSync(path.join(project, file), 'utf8').split('\n');
      const code = lines.filter((line) => line !== '' && !/^(\/\*\*?| \*|\/\/)/.test(line));
      return file !== 'src/client/index.ts' && code.every((line) => /^(export|import) .* from '/.test(line));
    });
    assert.deepEqual(forwarding, []);
  });
});
