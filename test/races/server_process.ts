import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import type { Config } from '../../src/config/config.ts';
import { type Client, openClient } from './client.ts';

/** Runs one SQL statement on the database of a server, whichever engine that is. */
export type Query = (statement: string) => Promise<readonly Record<string, unknown>[]>;

/** A server in a separate process. */
export type ServerProcess = {
  readonly url: string;
  readonly client: Client;
  readonly query: Query;
  /** The memory of the process; what is in use and what is garbage is distinguished if it was started with --expose-gc. */
  memory(): Promise<NodeJS.MemoryUsage>;
  readonly pid: number;
  /** The errors that it has logged. */
  log(): string;
  /** Sends SIGKILL. Resolves when the process has ended. */
  kill(): Promise<void>;
};

/** @param nodeArguments of the process, before the name of its file */
export async function startServer(
  placementDatabase: Partial<Config['placementDatabase']>,
  nodeArguments: readonly string[] = [],
): Promise<ServerProcess> {
  const child = fork(path.join(import.meta.dirname, 'server_main.ts'), [JSON.stringify(placementDatabase)], {
    execArgv: [...process.execArgv, ...nodeArguments],
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  });
  let complaints = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    complaints += chunk;
  });
  const ended = once(child, 'exit').then(([code, signal]) => {
    throw new Error(`The server ended with ${code ?? signal}: ${complaints}`);
  });
  ended.catch(() => {});
  const [{ url }] = (await Promise.race([once(child, 'message'), ended])) as [{ readonly url: string }]; // server_main.ts
  const client = openClient(url);
  const ask = questionsTo(child);
  return {
    url,
    client,
    query: (statement) => Promise.race([ask({ statement }), ended]),
    memory: async () => (await Promise.race([ask({}), ended]))[0] as unknown as NodeJS.MemoryUsage, // what server_main.ts sends for it
    pid: child.pid ?? 0,
    log: () => complaints,
    kill: async () => {
      client.close();
      child.kill('SIGKILL');
      await ended.catch(() => {});
    },
  };
}

type Answer = { readonly id: number; readonly rows?: Record<string, unknown>[]; readonly error?: string };

function questionsTo(child: ChildProcess): (question: { readonly statement?: string }) => ReturnType<Query> {
  const waiting = new Map<number, PromiseWithResolvers<readonly Record<string, unknown>[]>>();
  let lastId = 0;
  child.on('message', (message) => {
    const { id, rows, error } = message as Answer; // what server_main.ts sends after its URL
    const answer = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) answer?.resolve(rows ?? []);
    else answer?.reject(new Error(error));
  });
  return (question) => {
    const id = ++lastId;
    const answer = Promise.withResolvers<readonly Record<string, unknown>[]>();
    waiting.set(id, answer);
    // Of a server that has ended, its end tells.
    if (child.connected) child.send({ id, ...question });
    return answer.promise;
  };
}
