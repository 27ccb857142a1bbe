import { type Concurrency, inName, type Measurement, measure, withConnections } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';

/** The conditions of a workload. */
export type Conditions = {
  /** How many flat providers, or trees, there are. */
  readonly providers: number;
  readonly durationMs: number;
};

/** A workload that is measured on every server. */
export type Workload = {
  readonly name: string;
  readonly dataSet: 'flat' | 'nested';
  /** Measured at every size of the data set up to `largest` providers, not only at the smallest. */
  readonly grows?: boolean;
  readonly largest?: number;
  /** @returns undefined if it cannot be measured on this server */
  readonly run: (server: MeasuredServer, conditions: Conditions) => Promise<Measurement | undefined>;
};

/** A GET that must answer 200. `pathOf` gives the path of each call from its number. */
export function reading(
  workload: Omit<Workload, 'run' | 'name'> & {
    readonly name: string;
    readonly concurrency: Concurrency;
    /** The microversion; 1.39 unless said otherwise. A server that does not have it is not measured. */
    readonly version?: string;
    readonly pathOf: (call: number, providers: number) => string;
  },
): Workload {
  const { concurrency, version = '1.39', pathOf, ...rest } = workload;
  return {
    ...rest,
    name: `${rest.name}, ${inName(concurrency)}`,
    run: async (server, { durationMs, providers }) => {
      let bodyBytes = 0;
      if (!(await knowsVersion(server, version))) return undefined;
      const measured = await measure(server, concurrency, { durationMs }, async (connection, call) => {
        const answer = await connection.send('GET', pathOf(call, providers), '', false, version);
        expectStatus(answer.status, 200);
        bodyBytes = answer.bodyBytes;
      });
      return { ...measured, note: `${bodyBytes} bytes` };
    },
  };
}

/** Whether the server has this microversion. */
export const knowsVersion = (server: MeasuredServer, version: string): Promise<boolean> =>
  withConnections(server, 1, async ([connection]) => {
    const answer = await connection?.send('GET', '/', '', false, version);
    return answer?.status !== 406;
  });

/** @throws Error if an answer has an unexpected status */
export function expectStatus(status: number, ...expected: readonly number[]): void {
  if (!expected.includes(status)) throw new Error(`A server answered ${status} instead of ${expected.join(' or ')}.`);
}

/** A whole number from 1 to `most`. The sequence differs from run to run. */
export const anyUpTo = (most: number): number => 1 + Math.floor(Math.random() * most);
