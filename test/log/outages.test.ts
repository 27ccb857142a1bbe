/** While PostgreSQL is down the log has only the access line of each request. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { test } from 'node:test';
import { sql } from 'kysely';
import { startCommand, withCommands } from '../manage/commands.ts';
import { openClient } from '../races/client.ts';
import { openSwitch } from '../races/switch.ts';
import { until } from '../support/until.ts';

test('the log says once that the database is down, with the reason, and once that it is back', async () => {
  await withCommands('postgresql', 'migrated', async ({ folder, configFile, config }) => {
    const real = new URL(config.connection ?? '');
    const address = await openSwitch(Number(real.port));
    try {
      const written = await readFile(configFile, 'utf8');
      // On a slow machine any statement may be slow: its line would come between those that are compared.
      const led = written.replace(`:${real.port}/`, `:${address.port}/`);
      await writeFile(configFile, led.replace('connection = ', 'slow_statement_ms = -1\nconnection = '));
      const server = startCommand('placement-api', ['--config-file', configFile], folder);
      const [, url = ''] = await server.said(/listens on (http:\S+)/);
      const client = openClient(url);
      const name = { name: 'made while the database is unavailable' };
      const statuses = async () =>
        (
          await Promise.all([
            client.send('GET', '/resource_providers', 39),
            client.send('GET', '/allocation_candidates?resources=VCPU:1', 39),
            client.send('POST', '/resource_providers', 39, name),
            client.send('PUT', '/traits/CUSTOM_AWAY', 39),
          ])
        ).map(({ status }) => status);

      address.lead(1); // nothing listens there
      for (let turn = 1; turn <= 3; turn += 1) assert.deepEqual(await statuses(), [503, 503, 503, 503]);
      address.lead(Number(real.port));
      await until('it serves again', async () => (await client.send('GET', '/resource_providers', 39)).status === 200);
      client.close();
      server.child.kill('SIGTERM');
      const { stderr } = await server.ended;

      const entries = stderr
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      assert.ok(entries.filter(({ msg, status }) => msg === 'request' && status === 503).length >= 12);
      const others = entries.filter(({ msg }) => msg !== 'request' && !msg.startsWith('Ending'));
      assert.deepEqual(
        others.map(({ level, msg }) => [level, msg]),
        [
          ['warn', 'The database cannot be reached: requests are answered 503 until it can'],
          ['info', 'The database can be reached again'],
        ],
      );
      assert.match(others[0].reason, /Connection terminated|ECONNRE/);
      assert.ok(others[1].seconds >= 0);
      assert.doesNotMatch(stderr, /"stack"/);
    } finally {
      address.close();
    }
  });
});

test('an unexpected error has its stack in the log', async () => {
  await withCommands('postgresql', 'migrated', async ({ folder, configFile, withDatabase }) => {
    const server = startCommand('placement-api', ['--config-file', configFile], folder);
    const [, url = ''] = await server.said(/listens on (http:\S+)/);
    // Another program's trigger, of which the service knows nothing.
    await withDatabase(async ({ kysely }) => {
      await sql`create function refuse() returns trigger language plpgsql as 'begin raise ''not today''; end'`.execute(
        kysely,
      );
      await sql`create trigger refuse before insert on resource_providers execute function refuse()`.execute(kysely);
    });
    const client = openClient(url);
    assert.equal((await client.send('POST', '/resource_providers', 39, { name: 'refused' })).status, 500);
    client.close();
    server.child.kill('SIGTERM');
    const entries = (await server.ended).stderr
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const [error] = entries.filter(({ level }) => level === 'error');
    assert.equal(error.msg, 'Unexpected error');
    assert.match(error.err.stack, /not today.*\n\s+at /);
  });
});
