import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
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
  /** Closes the service in the process, which serves for a later `startServer`: to start a process takes a second of CPU time. */
  release(): Promise<void>;
};

/** A process of server_main.ts. */
type Host = {
  readonly child: ChildProcess;
  readonly ask: (question: Question) => ReturnType<Query>;
  /** All that it has written to its standard error. */
  complaints(): string;
  /** Rejects when it has ended. */
  readonly ended: Promise<never>;
};

/** Processes whose service was closed. */
const free: Host[] = [];
/** So many are kept. One takes some 100 MB. */
const mostFree = 2;
/** A service that takes longer to close is killed, in milliseconds. */
const closesMs = 10_000;

/** @param nodeArguments of the process, before the name of its file; then the process is a new one, and not for others */
export async function startServer(
  placementDatabase: Partial<Config['placementDatabase']>,
  nodeArguments: readonly string[] = [],
): Promise<ServerProcess> {
  const host = (nodeArguments.length === 0 ? free.pop() : undefined) ?? startHost(nodeArguments);
  const { child, ask, complaints, ended } = host;
  keepAlive(child, true);
  const answerTo = (question: Question) => Promise.race([ask(question), ended]);
  const [served] = await answerTo({ serve: placementDatabase });
  const url = String(served?.url);
  const client = openClient(url);
  const kill = async (): Promise<void> => {
    client.close();
    child.kill('SIGKILL');
    await ended.catch(() => {});
  };
  return {
    url,
    client,
    query: (statement) => answerTo({ statement }),
    memory: async () => (await answerTo({}))[0] as unknown as NodeJS.MemoryUsage, // what server_main.ts sends for it
    pid: child.pid ?? 0,
    log: complaints,
    kill,
    release: async () => {
      client.close();
      const late = sleep(closesMs, 'late', { ref: false });
      const closed = await Promise.race([answerTo({ close: true }), late]).catch(() => 'late');
      // What a service has complained about is not to be in the log of the next one.
      if (closed === 'late' || complaints() !== '' || nodeArguments.length > 0 || free.length >= mostFree)
        return kill();
      keepAlive(child, false);
      free.push(host);
    },
  };
}

function startHost(nodeArguments: readonly string[]): Host {
  const child = fork(path.join(import.meta.dirname, 'server_main.ts'), {
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
  return { child, ask: questionsTo(child), complaints: () => complaints, ended };
}

/** Whether this process waits for the other one. Without that, the other one ends with this process. */
function keepAlive(child: ChildProcess, isKept: boolean): void {
  const { stderr } = child;
  for (const each of [child, child.channel, stderr instanceof net.Socket ? stderr : undefined]) {
    if (isKept) each?.ref();
    else each?.unref();
  }
}

/** What server_main.ts answers: to serve a database, to close that service, a statement, or how much memory is used. */
type Question =
  | { readonly serve: Partial<Config['placementDatabase']> }
  | { readonly close: true }
  | { readonly statement?: string };

type Answer = { readonly id: number; readonly rows?: Record<string, unknown>[]; readonly error?: string };

function questionsTo(child: ChildProcess): (question: Question) => ReturnType<Query> {
  const waiting = new Map<number, PromiseWithResolvers<readonly Record<string, unknown>[]>>();
  let lastId = 0;
  child.on('message', (message) => {
    const { id, rows, error } = message as Answer; // what server_main.ts sends for a question
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
