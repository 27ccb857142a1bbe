import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { suite, test } from 'node:test';
import { openDatabase } from '../../db/engine/connect.ts';
import { beginImport, endImport } from '../../db/schema/unfinished_import.ts';
import { freePort } from '../support/free_port.ts';
import { openServiceOn } from '../support/services.ts';
import { fillEmbedded } from '../support/templates.ts';
import { type Ended, runToEnd } from './commands.ts';

/** Runs `placement-manage import` in a separate folder, on an embedded database there. */
async function runImport(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  files: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-import-'));
  try {
    for (const [name, text] of Object.entries(files)) await writeFile(path.join(folder, name), text);
    return await runToEnd('placement-manage', ['import', ...args], folder, environment);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

suite('placement-manage import without a source', () => {
  const wrong: readonly (readonly [args: readonly string[], says: RegExp])[] = [
    [[], /^error: give either --from or --from-config$/m],
    [['--from', 'mysql://u:secret@h/d', '--from-config', 'x'], /^error: give either --from or --from-config$/m],
    [['--from', 'postgresql://u:secret@h/d'], /^error: --from must be a URL of the form mysql:\/\/user/m],
    [['--from-config', 'placement.conf'], /^error: placement.conf has no \[placement_database\] connection$/m],
    [['--from-config', 'sqlite.conf'], /^error: sqlite.conf: \[placement_database\] connection must be a URL/m],
  ];
  const files = { 'placement.conf': '[api]\n', 'sqlite.conf': '[placement_database]\nconnection = sqlite:///secret\n' };
  for (const [args, says] of wrong) {
    test(args.join(' ') || 'no arguments', async () => {
      const { code, stdout, stderr } = await runImport(args, {}, files);
      assert.equal(code, 2);
      assert.match(stderr, says);
      assert.doesNotMatch(stdout + stderr, /secret/);
    });
  }

  test('a file that does not exist', async () => {
    const { code, stderr } = await runImport(['--from-config', 'nowhere.conf']);
    assert.equal(code, 1);
    assert.match(stderr, /^placement-manage: nowhere.conf cannot be read: ENOENT/);
  });

  test('a certificate file that does not exist', async () => {
    const { code, stderr } = await runImport(['--from', 'mysql://u:secret@localhost/d?ssl_ca=/nowhere/ca.pem']);
    assert.equal(code, 1);
    assert.equal(
      stderr,
      "placement-manage: The source mysql://localhost:3306/d cannot be reached: ENOENT: no such file or directory, open '/nowhere/ca.pem'. Correct the ssl_ parameters at the end of the URL.\n",
    );
  });

  test('a source that does not answer; the error does not show its password', async () => {
    const source = `127.0.0.1:${await freePort()}/placement`;
    const config = `[placement_database]\nconnection = mysql+pymysql://placement:very%40secret@${source}?charset=utf8\n`;
    for (const { code, stdout, stderr } of [
      await runImport(['--from', `mysql://placement:very%40secret@${source}`]),
      await runImport(['--from', `mysql://placement@${source}`], { MYSQL_PWD: 'very@secret' }),
      await runImport(['--from-config', 'upstream.conf'], {}, { 'upstream.conf': config }),
    ]) {
      assert.equal(code, 69);
      assert.equal(
        stderr.replace(/: connect ECONNREFUSED [\d.:]+\./, ': REASON.'),
        `placement-manage: The source mysql://${source} cannot be reached: REASON. Start the server, or correct the URL.\n`,
      );
      assert.doesNotMatch(stdout + stderr, /secret/);
    }
  });
});

test('no service starts on an unfinished import', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-import-'));
  const settings = { embeddedPath: path.join(folder, 'data') };
  const change = async (use: typeof endImport): Promise<void> => {
    const database = await openDatabase(settings);
    await use(database);
    await database.close();
  };
  const open = () => openServiceOn({ settings, config: { connection: undefined, ...settings }, drop: async () => {} });
  try {
    await fillEmbedded(settings.embeddedPath);
    await change((database) => beginImport(database, 'mysql://db.example.com:3306/placement'));
    await assert.rejects(
      open(),
      /^Error: The database holds an unfinished import\. Run the same "placement-manage import" again/,
    );
    await change(endImport);
    await (await open()).close();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
});
