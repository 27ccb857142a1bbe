import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';

const root = path.join(import.meta.dirname, '..', '..');
const cacheModule = pathToFileURL(path.join(root, 'src', 'start', 'compile_cache.ts')).href;

/** The folder in which a process that imported the module keeps compiled code. */
async function folderWith(environment: Readonly<Record<string, string>>): Promise<string> {
  const script = `import ${JSON.stringify(cacheModule)};
    import { getCompileCacheDir } from 'node:module';
    console.log(getCompileCacheDir() ?? 'none');`;
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script], {
    env: { PATH: process.env.PATH ?? '', ...environment },
  });
  return stdout.trim();
}

test('compiled code is kept in the package, or in the folder that the environment names, or not at all', async () => {
  assert.equal(path.dirname(await folderWith({})), path.join(root, 'node_modules', '.cache'));
  const other = path.join(root, 'node_modules', '.cache', 'other');
  assert.equal(path.dirname(await folderWith({ NODE_COMPILE_CACHE: other })), other);
  assert.equal(await folderWith({ NODE_DISABLE_COMPILE_CACHE: '1' }), 'none');
  const file = path.join(root, 'package.json');
  assert.equal(await folderWith({ NODE_COMPILE_CACHE: path.join(file, 'cache') }), 'none', 'where no folder can be');
});
