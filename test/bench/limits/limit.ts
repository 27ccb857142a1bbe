import type { Measurement } from '../measure.ts';

/** Something no server can beat on this machine, measured in the same run. */
export type Limit = {
  readonly name: string;
  readonly run: (durationMs: number) => Promise<Measurement>;
};

/** Of what has no server, no database and no client. */
export const bare = { serverCpuMs: Number.NaN, databaseCpuMs: Number.NaN, clientCpuMs: Number.NaN } as const;
