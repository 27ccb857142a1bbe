/** Documents that are run one after the other on one service create providers of different names, and do not hide a refusal. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { project } from '../client/documentation.ts';

/** The service of this page is its own. */
const alone = ['teams.md'];

/** The code of each page. */
async function pages(): Promise<ReadonlyMap<string, string>> {
  const names = (await readdir(path.join(project, 'docs'))).filter((name) => name.endsWith('.md'));
  const read = names.map(async (name) => {
    const markdown = await readFile(path.join(project, 'docs', name), 'utf8');
    return [
      name,
      Array.from(markdown.matchAll(/^```\w*\n([\s\S]*?)^```$/gm), ([, code = '']) => code).join(''),
    ] as const;
  });
  return new Map(await Promise.all(read));
}

test('no two documents create a provider of the same name or UUID', async () => {
  const makers = new Map<string, Set<string>>();
  for (const [page, code] of await pages()) {
    if (alone.includes(page)) continue;
    const made = [
      ...code.matchAll(/^\$? ?placement provider create (\S+)(?:.*--uuid ([0-9a-f-]{36}))?/gm),
      ...code.matchAll(/\/resource_providers -d '\{"name": "([^"$]+)", "uuid": "([0-9a-f-]{36})"/g),
      ...code.matchAll(/^ *- name: (\S+)$/gm),
    ];
    for (const name of made.flatMap(([, ...names]) => names).filter((one) => one !== undefined && !one.includes('$'))) {
      makers.set(name, (makers.get(name) ?? new Set()).add(page));
    }
  }
  assert.ok(makers.size > 10, [...makers.keys()].join(' '));
  assert.deepEqual(
    Array.from(makers, ([name, by]) => [name, [...by]] as const).filter(([, by]) => by.length > 1),
    [],
  );
});

test('a request whose answer is not shown says so where it is refused', async () => {
  const hidden = [...(await pages())].flatMap(([page, code]) =>
    code
      .split('\n')
      .filter((line) => /^ *(?:api|curl) .*(?:-o|>) ?\/dev\/null/.test(line) && !/ -w | --fail-with-body /.test(line))
      .map((line) => `${page}: ${line}`),
  );
  assert.deepEqual(hidden, []);
});
