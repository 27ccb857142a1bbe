import { type Measurement, measure } from '../measure.ts';
import type { MeasuredServer } from '../measured_server.ts';

/** Under what a workload runs. */
export type Conditions = {
  /** How many flat providers, or trees, there are. */
  readonly providers: number;
  readonly durationMs: number;
};

/** Something that is measured on every server. */
export type Workload = {
  readonly name: string;
  readonly dataSet: 'flat' | 'nested';
  /** Measured at every size of the data set, not at the smallest only, up to `largest` providers. */
  readonly grows?: boolean;
  readonly largest?: number;
  /** @returns undefined where it cannot be measured on this server. */
  readonly run: (server: MeasuredServer, conditions: Conditions) => Promise<Measurement | undefined>;
};

/** A GET that must answer 200; `pathOf` is asked before each, with the number of the call. */
export function reading(
  workload: Omit<Workload, 'run' | 'name'> & {
    readonly name: string;
    readonly concurrency: number;
    readonly pathOf: (call: number, providers: number) => string;
  },
): Workload {
  const { concurrency, pathOf, ...rest } = workload;
  return {
    ...rest,
    name: `${rest.name}, c${concurrency}`,
    run: async (server, { durationMs, providers }) => {
      let bodyBytes = 0;
      const measured = await measure(server, concurrency, { durationMs }, async (connection, call) => {
        const answer = await connection.send('GET', pathOf(call, providers));
        expectStatus(answer.status, 200);
        bodyBytes = answer.bodyBytes;
      });
      return { ...measured, note: `${bodyBytes} bytes` };
    },
  };
}

/** @throws Error where an answer has another status than it must have. */
export function expectStatus(status: number, ...expected: readonly number[]): void {
  if (!expected.includes(status)) throw new Error(`A server answered ${status} instead of ${expected.join(' or ')}.`);
}

/** A whole number from 1 to `most`; which ones follow each other differs from run to run. */
export const anyUpTo = (most: number): number => 1 + Math.floor(Math.random() * most);
