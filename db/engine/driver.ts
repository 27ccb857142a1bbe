import {
  type DatabaseConnection,
  type Driver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
} from 'kysely';
import type { Tables } from '../tables.ts';
import { begin, type Connect, type Connection } from './connection.ts';

/** Kysely, whose statements are sent on connections that `connect` lends. Their pool is closed by the code that opened it. */
export const kyselyOn = (connect: Connect): Kysely<Tables> =>
  new Kysely<Tables>({
    dialect: {
      createDriver: () => driverOn(connect),
      createQueryCompiler: () => new PostgresQueryCompiler(),
      createAdapter: () => new PostgresAdapter(),
      createIntrospector: (db) => new PostgresIntrospector(db),
    },
  });

function driverOn(connect: Connect): Driver {
  const shown = new WeakMap<Connection, DatabaseConnection>();
  const lent = new WeakMap<DatabaseConnection, Connection>();
  const show = (connection: Connection): DatabaseConnection => {
    let known = shown.get(connection);
    if (known === undefined) {
      known = executing(connection);
      shown.set(connection, known);
      lent.set(known, connection);
    }
    return known;
  };
  const send = async (shownConnection: DatabaseConnection, text: string): Promise<void> => {
    await lent.get(shownConnection)?.send(text);
  };
  return {
    init: async () => {},
    acquireConnection: async () => show(await connect()),
    beginTransaction: (connection, { isolationLevel, accessMode }) => {
      if (isolationLevel === undefined && accessMode === undefined) return send(connection, begin);
      const isolation = isolationLevel === undefined ? [] : [`isolation level ${isolationLevel}`];
      return send(connection, ['start transaction', ...isolation, accessMode ?? ''].join(' ').trimEnd());
    },
    commitTransaction: (connection) => send(connection, 'commit'),
    rollbackTransaction: (connection) => send(connection, 'rollback'),
    releaseConnection: async (connection) => lent.get(connection)?.release(),
    destroy: async () => {},
  };
}

const changing = new Set(['INSERT', 'UPDATE', 'DELETE', 'MERGE']);

const executing = (connection: Connection): DatabaseConnection => ({
  executeQuery: async ({ sql, parameters }) => {
    const { command, rowCount, rows } = await connection.send(sql, parameters).catch(withCaller);
    return { rows, ...(changing.has(command) ? { numAffectedRows: BigInt(rowCount ?? 0) } : {}) };
  },
  streamQuery: () => {
    throw new Error('Statements are not streamed.');
  },
});

/** The stack of an error of the server begins at the socket: adds where the statement was sent. */
function withCaller(error: unknown): never {
  if (error instanceof Error) error.stack = `${error.stack}\n${new Error().stack?.split('\n').slice(1).join('\n')}`;
  throw error;
}
