import type { Query } from '../races/server_process.ts';

/** A server of the API that is measured: one process or several on one database. */
export type MeasuredServer = {
  readonly name: string;
  /** The URL of each of its processes. */
  urls(): readonly string[];
  /** Its processes. If they are not known, this is empty, and their CPU time and memory are not reported. */
  pids(): readonly number[];
  /**
   * The first process of its PostgreSQL server. Undefined if it is not known, or if the server has an embedded
   * database.
   */
  readonly databasePid: number | undefined;
  /** Its PostgreSQL database. Undefined if only the server itself can reach its data. */
  databaseUrl(): string | undefined;
  /** Replaces all of its data. */
  fill(load: (query: Query) => Promise<void>): Promise<void>;
  /**
   * Ends the server, starts it again and measures the time until it answers. Undefined if the server was not started by
   * this program.
   */
  readonly restart?: () => Promise<{ readonly startMs: number }>;
  close(): Promise<void>;
};
