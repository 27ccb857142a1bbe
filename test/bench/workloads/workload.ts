import { type Concurrency, inName, type Measurement, measure, withConnection } from '../measure.ts';
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
  /** The microversion that it needs: a server that does not have it is not measured. */
  readonly version?: string;
  /** @returns undefined if it cannot be measured on this server */
  readonly run: (server: MeasuredServer, conditions: Conditions) => Promise<Measurement | undefined>;
};

/** A GET that must answer 200. `pathOf` returns the path of each call by its number. */
export function reading(
  workload: Omit<Workload, 'run' | 'name'> & {
    readonly name: string;
    readonly concurrency: Concurrency;
    readonly pathOf: (call: number, providers: number) => string;
  },
): Workload {
  const { concurrency, version = '1.39', pathOf, ...rest } = workload;
  return {
    ...rest,
    version,
    name: `${rest.name}, ${inName(concurrency)}`,
    run: async (server, { durationMs, providers }) => {
      let bodyBytes = 0;
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
  withConnection(server, async ({ send }) => (await send('GET', '/', '', false, version)).status !== 406);

/** @throws Error if an answer has an unexpected status */
export function expectStatus(status: number, ...expected: readonly number[]): void {
  if (!expected.includes(status)) throw new Error(`A server answered ${status} instead of ${expected.join(' or ')}.`);
}

/** A whole number from 1 to `most`. The sequence differs from run to run. */
export const anyUpTo = (most: number): number => 1 + Math.floor(Math.random() * most);
