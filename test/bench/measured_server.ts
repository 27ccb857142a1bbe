import type { Query } from '../races/server_process.ts';

/** A server of the API that is measured: one process or several on one database. */
export type MeasuredServer = {
  readonly name: string;
  /** Where each of its processes listens. */
  urls(): readonly string[];
  /** Its processes; none where they are not known, and then their CPU time and memory are not told. */
  pids(): readonly number[];
  /** The first process of its PostgreSQL server; undefined where that is not known, or where it has the database in itself. */
  readonly databasePid: number | undefined;
  /** Its PostgreSQL database; undefined where only the server itself can reach its data. */
  databaseUrl(): string | undefined;
  /** Replaces all of its data. */
  fill(load: (query: Query) => Promise<void>): Promise<void>;
  /** Ends it and starts it again, and tells how long the start took until it answered; undefined where that is not ours to do. */
  readonly restart?: () => Promise<{ readonly startMs: number }>;
  close(): Promise<void>;
};
