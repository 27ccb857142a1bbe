/** The documents name only things that exist: linked files, files of the code, commands. */
import assert from 'node:assert/strict';
import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { suite, test } from 'node:test';

const project = path.join(import.meta.dirname, '..', '..');
const read = (file: string): Promise<string> => readFile(path.join(project, file), 'utf8');
const listed = async (folder: string, recursive = false): Promise<readonly string[]> =>
  (await readdir(path.join(project, folder), { recursive })).map((file) => path.join(folder, file));

const folders = ['.', 'docs', 'client', 'deploy/cluster', 'deploy/kubernetes'];
const documents = (await Promise.all(folders.map((folder) => listed(folder))))
  .flat()
  .filter((file) => file.endsWith('.md'));
const codeFolders = ['src', 'db', 'test', 'gabbits', 'deploy', 'docs'];
const files = (await Promise.all(codeFolders.map((folder) => listed(folder, true)))).flat();

const isThere = (file: string): Promise<boolean> =>
  stat(path.join(project, file)).then(
    () => true,
    () => false,
  );

/** The anchor of a heading on GitHub. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-');

const anchorsOf = (text: string): readonly string[] =>
  [...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) => anchorOf(heading));

assert.ok(documents.length >= 9, `${documents}`);
for (const document of documents) {
  suite(document, () => {
    test('links have a target', async () => {
      const text = await read(document);
      for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
        if (/^https?:/.test(target)) continue;
        const [file = '', anchor] = target.split('#');
        const linked = file === '' ? document : path.join(path.dirname(document), file);
        assert.ok(await isThere(linked), target);
        if (anchor !== undefined) assert.ok(anchorsOf(await read(linked)).includes(anchor), target);
      }
    });

    test('files and folders exist', async () => {
      // Blocks of code show paths of other machines, and files to be made.
      const text = (await read(document)).replace(/^```[\s\S]*?^```$/gm, '');
      for (const [, name = ''] of text.matchAll(/`([\w./-]+)`/g)) {
        const isOfTheCode = codeFolders.some((folder) => name.startsWith(`${folder}/`));
        if (isOfTheCode) assert.ok(await isThere(name), name);
        else if (name.endsWith('.ts'))
          assert.ok(
            files.some((file) => file.endsWith(`/${name}`)),
            name,
          );
      }
    });

    test('commands exist', async () => {
      const text = await read(document);
      const { scripts } = JSON.parse(await read('package.json'));
      for (const [, name = ''] of text.matchAll(/\bnpm run (?:-\S+ )*([\w:]+)/g)) {
        assert.ok(name in scripts, `npm run ${name}`);
      }
      const targets = new Set([...(await read('Makefile')).matchAll(/^([\w-]+):/gm)].map(([, name]) => name));
      for (const [, name = ''] of text.matchAll(/(?:`|^ {4})make ([\w-]+)/gm)) {
        assert.ok(targets.has(name), `make ${name}`);
      }
    });
  });
}
