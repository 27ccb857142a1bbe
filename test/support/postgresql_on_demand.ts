import http from 'node:http';
import { startPostgresql } from './postgresql.ts';

/** A PostgreSQL server for all test files of a run. It starts when the first of them asks for it. */
export type PostgresqlOnDemand = {
  /**
   * Test files ask for the server's URL at this address. They find it in the environment as
   * `TEST_POSTGRESQL_ON_DEMAND`.
   */
  readonly address: string;
  /** Ends the server, if it was started. */
  stop(): Promise<void>;
};

/**
 * Waits for a request of a test file. If no test of a run needs PostgreSQL, it is not started, which saves two seconds.
 */
export async function offerPostgresql(): Promise<PostgresqlOnDemand> {
  let started: ReturnType<typeof startPostgresql> | undefined;
  const questions = http.createServer((_, response) => {
    started ??= startPostgresql();
    started.then(
      ({ url }) => response.end(url),
      (error: unknown) => response.writeHead(500).end(String(error)),
    );
  });
  await new Promise<void>((resolve) => questions.listen(0, '127.0.0.1', resolve));
  const address = questions.address();
  if (address === null || typeof address === 'string') throw new Error('A server on a TCP port has an address.');
  questions.unref();
  return {
    address: `http://127.0.0.1:${address.port}`,
    stop: async () => {
      questions.close();
      const server = await started?.catch(() => undefined);
      await server?.stop();
    },
  };
}

/** The URL of the server that `offerPostgresql` starts. @throws Error with the server's log if it does not start */
export async function askForPostgresql(address: string): Promise<string> {
  const response = await fetch(address, { headers: { connection: 'close' } });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  return text;
}
