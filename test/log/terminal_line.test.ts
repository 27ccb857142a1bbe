import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import path from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { terminalLine } from '../../src/log/log.ts';

const time = '2026-11-21T12:00:00.123Z';
const clock = new Date(time).toTimeString().slice(0, 8);

test('a line for people has the time, what happened, and how long it took', () => {
  const request = {
    level: 'info',
    time,
    method: 'GET',
    url: '/traits?name=\u001b[31m',
    status: 200,
    bytes: 12,
    ms: 1.25,
  };
  assert.equal(
    terminalLine(JSON.stringify({ ...request, user: 'admin', microversion: '1.39', msg: 'request' })),
    `${clock} 200  GET /traits?name=\\u{1b}[31m  1.25 ms, admin, 1.39\n`,
  );
  assert.equal(
    terminalLine(JSON.stringify({ ...request, msg: 'request', url: '/' })),
    `${clock} 200  GET /  1.25 ms\n`,
  );
  assert.equal(
    terminalLine(JSON.stringify({ level: 'warn', time, worker: 1, msg: 'A worker ended\nand is replaced' })),
    `${clock} warn A worker ended\\nand is replaced worker: 1\n`,
  );
  const err = { type: 'Error', message: 'no', stack: 'Error: no\n    at x.ts:1' };
  assert.equal(
    terminalLine(JSON.stringify({ level: 'error', time, err, msg: 'It failed' })),
    `${clock} error It failed\n  Error: no\n      at x.ts:1\n`,
  );
});

const writer = path.join(import.meta.dirname, 'line_writer.ts');

test('the log has lines for people in a terminal, and JSON in any other output', {
  skip: process.platform !== 'linux',
}, async () => {
  const run = promisify(execFile);
  const command = `'${process.execPath}' '${writer}'`;
  const { stdout } = await run('script', ['-qec', command, '/dev/null']);
  assert.match(stdout, /^\d\d:\d\d:\d\d info A line\r?\n$/);
  const { stderr } = await run(process.execPath, [writer]);
  assert.equal(JSON.parse(stderr).msg, 'A line');
  const configured = await run('script', ['-qec', `${command} json`, '/dev/null']);
  assert.equal(JSON.parse(configured.stdout).msg, 'A line');
});
