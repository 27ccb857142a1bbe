/** No other user of the machine can read the files of an embedded database. */
import assert from 'node:assert/strict';
import { chmod, mkdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { inFolder } from '../support/in_folder.ts';
import { fillEmbedded } from '../support/templates.ts';

const modeOf = async (name: string): Promise<number> => (await stat(name)).mode & 0o777;

test('in a folder that is open to every user, no other user can read a new or an old database', async () => {
  await inFolder(async (folder) => {
    const outer = path.join(folder, 'data');
    await mkdir(outer);
    await chmod(outer, 0o755);
    await (await openDatabase({ embeddedPath: outer })).close();
    const files = path.join(outer, 'postgresql');
    assert.equal(await modeOf(files), 0o700, 'new');
    assert.equal(await modeOf(outer), 0o755, 'the folder of the operator stays as it is');

    // As older releases left it.
    await chmod(files, 0o755);
    await (await openDatabase({ embeddedPath: outer })).close();
    assert.equal(await modeOf(files), 0o700, 'old');

    const other = path.join(folder, 'filled');
    await mkdir(other);
    await chmod(other, 0o777);
    await fillEmbedded(other);
    await (await openDatabase({ embeddedPath: other })).close();
    assert.equal(await modeOf(path.join(other, 'postgresql')), 0o700, 'filled from a template');
  });
});
