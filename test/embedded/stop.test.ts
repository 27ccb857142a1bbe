/** Where the disk refuses a sync, the embedded database stops, and acknowledges nothing more. */
import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { type RawBuilder, sql } from 'kysely';
import { openDatabase } from '../../db/engine/connect.ts';
import { startCommand, withCommands } from '../manage/commands.ts';
import { fillEmbedded } from '../support/templates.ts';
import { failSyncs } from './failing_disk.ts';

test('after a sync that fails no statement is acknowledged, and a new start has all that was', async () => {
  const embeddedPath = await mkdtemp(path.join(os.tmpdir(), 'placement-stop-'));
  try {
    await fillEmbedded(embeddedPath);
    const stops: string[] = [];
    const database = await openDatabase({ embeddedPath, stopped: ({ message }) => stops.push(message) });
    const run = (statement: RawBuilder<unknown>) => statement.execute(database.kysely);
    const insert = (name: string) => sql`insert into traits (name) values (${name})`;
    await run(insert('CUSTOM_ACKNOWLEDGED'));
    failSyncs(true);
    const refusal = { code: '57P02', message: /^the embedded database has stopped: could not fsync file "\w{24}"/ };
    await assert.rejects(database.transaction([insert('CUSTOM_ONE'), insert('CUSTOM_TWO')]), refusal);
    for (const broken of [true, false]) {
      failSyncs(broken);
      await assert.rejects(run(insert('CUSTOM_LATER')), refusal);
      await assert.rejects(run(sql`insert into traits (name) values ('CUSTOM_LATER')`), refusal);
      await assert.rejects(database.transaction([insert('CUSTOM_LATER'), insert('CUSTOM_MORE')]), refusal);
      await assert.rejects(run(sql`select name from traits`), refusal);
    }
    assert.equal(stops.length, 1);
    await database.close();

    const again = await openDatabase({ embeddedPath });
    const { rows } = await sql<{ name: string }>`
      select name from traits where name like 'CUSTOM_%' order by id`.execute(again.kysely);
    const names = rows.map(({ name }) => name);
    assert.equal(names[0], 'CUSTOM_ACKNOWLEDGED');
    assert.ok(!names.includes('CUSTOM_LATER'));
    await again.close();
  } finally {
    failSyncs(false);
    await rm(embeddedPath, { recursive: true, force: true });
  }
});

test('the service ends with 1 when a sync fails, and serves again at the next start', async () => {
  await withCommands('embedded', 'migrated', async ({ folder, configFile }) => {
    const listens = /^placement-api \S+ listens on (http:\/\/\S+)\n/m;
    const imports = `--import=${pathToFileURL(path.join(import.meta.dirname, 'failing_disk.ts'))}`;
    const start = () => startCommand('placement-api', ['--config-file', configFile], folder, { NODE_OPTIONS: imports });
    const headers = { 'x-auth-token': 'admin', 'openstack-api-version': 'placement 1.39' };
    const put = (url: string, trait: string) => fetch(`${url}/traits/${trait}`, { method: 'PUT', headers });

    const server = start();
    const [, url = ''] = await server.said(listens);
    assert.equal((await put(url, 'CUSTOM_ACKNOWLEDGED')).status, 201);
    server.child.kill('SIGUSR2');
    // The signal may come after the next requests.
    let status = 201;
    for (let each = 0; status === 201; each += 1)
      status = await put(url, `CUSTOM_${each}`).then(
        (answer) => answer.status,
        () => 0,
      );
    assert.ok([0, 503].includes(status), `${status}`);
    const { code, stderr } = await server.ended;
    assert.equal(code, 1);
    assert.match(stderr, /could not fsync file/);
    assert.match(stderr, /The process ends, since its embedded database cannot write to its files/);

    const next = start();
    const [, nextUrl = ''] = await next.said(listens);
    assert.equal((await fetch(`${nextUrl}/traits/CUSTOM_ACKNOWLEDGED`, { headers })).status, 204);
    assert.equal((await put(nextUrl, 'CUSTOM_NEXT')).status, 201);
    next.child.kill('SIGTERM');
    assert.equal((await next.ended).code, 0);
  });
});
