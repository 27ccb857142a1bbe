import type { Measurement } from '../measure.ts';

/** A figure that no server can beat on this machine, measured in the same run. */
export type Limit = {
  readonly name: string;
  readonly run: (durationMs: number) => Promise<Measurement>;
};

/** The CPU figures of a limit without a server, a database and a client. */
export const bare = { serverCpuMs: Number.NaN, databaseCpuMs: Number.NaN, clientCpuMs: Number.NaN } as const;
