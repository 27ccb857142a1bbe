import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { createDatabase, execute, startPostgresql } from './postgresql.ts';
import { until } from './until.ts';

const isUp = (url: string): Promise<boolean> =>
  execute(url, 'select 1').then(
    () => true,
    () => false,
  );

test('a server runs without durability by default, and ends when it is stopped', async () => {
  for (const [durable, fsync] of [
    [false, 'off'],
    [true, 'on'],
  ] as const) {
    const { url, stop } = await startPostgresql({ durable, settings: { work_mem: '5MB' } });
    const { rows } = await execute(url, "select current_setting('fsync') fsync, current_setting('work_mem') work_mem");
    assert.deepEqual(rows, [{ fsync, work_mem: '5MB' }]);
    await stop();
    assert.equal(await isUp(url), false);
  }
});

test('a database can be a copy of another one, and no longer exists after it was dropped', async () => {
  const { url, stop } = await startPostgresql();
  try {
    const original = await createDatabase(url);
    await execute(original.url, 'create table kept as select 1 as number');
    const copy = await createDatabase(url, new URL(original.url).pathname.slice(1));
    assert.deepEqual((await execute(copy.url, 'select number from kept')).rows, [{ number: 1 }]);
    await copy.drop();
    assert.equal(await isUp(copy.url), false);
    assert.equal(await isUp(original.url), true);
  } finally {
    await stop();
  }
});

test('a server ends together with the process that started it, even if that process is killed', async () => {
  const script = `
    const { startPostgresql } = await import(${JSON.stringify(import.meta.resolve('./postgresql.ts'))});
    const { url } = await startPostgresql();
    process.stdout.write(url, () => process.kill(process.pid, 'SIGKILL'));
  `;
  const killed = await promisify(execFile)(process.execPath, ['--input-type=module', '--eval', script]).then(
    () => assert.fail('The process was not killed.'),
    (error: { readonly stdout: string }) => error.stdout,
  );
  assert.match(killed, /^postgresql:/);
  await until('the server has ended', async () => !(await isUp(killed)));
});
