/** Questions of the primary process to its workers. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { EventEmitter } from 'node:events';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from '../../src/workers/ask.ts';
import type { FromWorker } from '../../src/workers/messages.ts';

/** Asks a process that hears the message as `message`, for text. The question would wait for longer than this. */
async function answerOf(script: string): Promise<unknown> {
  const worker = spawn(process.execPath, ['-e', `process.on('message', (message) => { ${script} })`], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const isAnswer = (message: FromWorker) => message.kind === 'shapes';
  const waiting = new AbortController();
  const over = sleep(30_000, 'no answer', { signal: waiting.signal }).catch(() => {});
  const answer = ask(worker, (id) => ({ kind: 'reportShapes', id }), isAnswer, 40_000);
  try {
    return await Promise.race([answer.then((found) => found?.text), over]);
  } finally {
    waiting.abort();
    worker.kill();
  }
}

test('a worker that ends answers nothing, and is not waited for', async () => {
  assert.equal(await answerOf('process.exit()'), undefined);
});

test('the answer to another question is not taken', async () => {
  const answers = `process.send({ kind: 'shapes', id: message.id + 1, text: 'other' });
    process.send({ kind: 'shapes', id: message.id, text: 'own' });`;
  assert.equal(await answerOf(answers), 'own');
});

test('after its answer a question leaves no listener and no timer behind', async () => {
  const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
  const before = timers();
  const events = new EventEmitter();
  const send = ({ id }: { readonly id: number }) => events.emit('message', { kind: 'shapes', id, text: 'own' });
  const worker = Object.assign(events, { send }) as EventEmitter as ChildProcess; // it uses nothing else of it
  const isAnswer = (message: FromWorker) => message.kind === 'shapes';
  const answer = await ask(worker, (id) => ({ kind: 'reportShapes', id }), isAnswer, 40_000);
  assert.equal(answer?.text, 'own');
  assert.deepEqual([events.listenerCount('message'), events.listenerCount('exit'), timers()], [0, 0, before]);
});
