import assert from 'node:assert/strict';
import { chmod, chown, cp, mkdir, readdir, truncate, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { startCommand } from '../manage/commands.ts';
import { inFolder } from '../support/in_folder.ts';

const open = async (embeddedPath: string): Promise<void> => (await openDatabase({ embeddedPath })).close();

const cannotBeIn = (folder: string, reason: string) => ({
  message:
    `The embedded database cannot be in ${folder}: ${reason}. Set [placement_database] embedded_path to a folder that this ` +
    'user may write to, or connection to a PostgreSQL server.',
});

test('a file at the place of the folder, or in its path, is reported', async () => {
  await inFolder(async (folder) => {
    const file = path.join(folder, 'data');
    await writeFile(file, '');
    for (const each of [file, path.join(file, 'below')])
      await assert.rejects(open(each), cannotBeIn(each, 'a part of the path is a file'));
  });
});

test('only the folder itself is made: that the folder it is to be in does not exist is reported', async () => {
  await inFolder(async (folder) => {
    const data = path.join(folder, 'lib', 'data');
    await assert.rejects(open(data), cannotBeIn(data, 'the folder that it would be made in does not exist'));
    assert.deepEqual(await readdir(folder), []);
  });
});

test('a folder that this user may not write to is reported', async () => {
  await inFolder(async (folder) => {
    const data = path.join(folder, 'data');
    await mkdir(data);
    const wanted = [
      [path.join(data, 'more'), cannotBeIn(path.join(data, 'more'), 'this user may not write there')],
      [data, cannotBeIn(data, 'this user may not write there')],
    ] as const;
    await chmod(data, 0o500);
    await withoutRoot(folder, async () => {
      for (const [where, refusal] of wanted) await assert.rejects(open(where), refusal);
    });
  });
});

/** Root may write everywhere. During the callback this process runs as the user nobody, who owns the folder. */
async function withoutRoot(folder: string, call: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return call();
  const nobody = 65_534;
  for (const each of [folder, path.join(folder, 'data')]) await chown(each, nobody, nobody);
  process.seteuid?.(nobody);
  try {
    await call();
  } finally {
    process.seteuid?.(0);
  }
}

test('damaged files are reported as such, and another folder still works', async () => {
  await inFolder(async (folder) => {
    const data = path.join(folder, 'data');
    await open(data);
    await truncate(path.join(data, 'postgresql', 'global', 'pg_control'), 100);
    const refusal =
      /^Error: The embedded database in \/\S+\/data cannot be opened: the disk is full, or its files are damaged, .* embedded_path to/;
    await assert.rejects(open(data), refusal);
    await assert.rejects(open(data), refusal, 'and the error does not say that the folder is in use');
    await open(path.join(folder, 'other'));
  });
});

/**
 * Makes a process say at its end for how long it has waited after its first line on standard error. On a busy machine it takes long to end as
 * well, but does not wait.
 */
const tellsWait = `--import=data:text/javascript,${encodeURIComponent(`
  const { write } = process.stderr;
  let reported;
  process.stderr.write = (...text) => {
    reported ??= performance.eventLoopUtilization();
    return write.apply(process.stderr, text);
  };
  process.once('exit', () => {
    write.call(process.stderr, \`waited \${performance.eventLoopUtilization(reported).idle}\\n\`);
  });
`)}`;

test('a process ends soon after files cannot be recovered, and says what to do', async () => {
  await inFolder(async (folder) => {
    // The files as a kill -9 leaves them, and damaged.
    const [data, killed] = [path.join(folder, 'data'), path.join(folder, 'killed')];
    const database = await openDatabase({ embeddedPath: data });
    await cp(data, killed, { recursive: true });
    await database.close();
    const log = path.join(killed, 'postgresql', 'pg_wal');
    for (const name of await readdir(log)) if (/^[0-9A-F]{24}$/.test(name)) await truncate(path.join(log, name), 0);
    const file = path.join(folder, 'placement.conf');
    await writeFile(file, `[placement_database]\nembedded_path = ${killed}\n`);
    const args = ['--config-file', file, 'db', 'version'];
    const { code, stderr } = await startCommand('placement-manage', args, folder, { NODE_OPTIONS: tellsWait }).ended;
    assert.equal(code, 1);
    const [, said = '', waitedMs] = /^(.*\n)waited (\S+)\n$/s.exec(stderr) ?? [];
    assert.match(said, / cannot be opened: .* If the disk is full, make room on it\. Otherwise put a backup .*\n$/);
    assert.ok(Number(waitedMs) < 5000, `a timer of PostgreSQL kept it for 10 s, or for ever: ${waitedMs} ms`);
  });
});
