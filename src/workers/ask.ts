import type { ChildProcess } from 'node:child_process';
import type { FromWorker, ToWorker } from './messages.ts';

let lastId = 0;

/**
 * Sends a question to a worker. Resolves with undefined if the worker ends, or does not answer in time.
 *
 * @param questionOf the message with this id, which the answer repeats
 */
export function ask<Answer extends FromWorker & { readonly id: number }>(
  worker: ChildProcess,
  questionOf: (id: number) => ToWorker,
  isAnswer: (message: FromWorker) => message is Answer,
  waitMs: number,
): Promise<Answer | undefined> {
  return new Promise((resolve) => {
    lastId += 1;
    const id = lastId;
    const settle = (answer: Answer | undefined): void => {
      clearTimeout(timer);
      worker.off('message', hear).off('exit', leftOut);
      resolve(answer);
    };
    const leftOut = (): void => settle(undefined);
    const hear = (message: FromWorker): void => {
      if (isAnswer(message) && message.id === id) settle(message);
    };
    const timer = setTimeout(leftOut, waitMs);
    worker.on('message', hear).once('exit', leftOut);
    worker.send(questionOf(id), () => {});
  });
}
