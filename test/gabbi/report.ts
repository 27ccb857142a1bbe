import type { FileResult } from './folder.ts';

export type Totals = { readonly passed: number; readonly failed: number; readonly skipped: number };

/** One line for the file, and below it each failure in full. */
export function fileReport(label: string, { file, seconds, tests }: FileResult): string {
  const failures = tests.filter((test) => test.outcome === 'failed');
  const { passed, skipped } = count(tests);
  const counts = [
    `${passed} passed`,
    ...(failures.length > 0 ? [`${failures.length} FAILED`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ];
  return [
    `${[label, file].filter(Boolean).join(' ')}: ${counts.join(', ')} (${seconds.toFixed(1)} s)`,
    ...failures.map(({ name, message }) => `  FAILED ${name}\n${message.replace(/^/gm, '    ')}`),
  ].join('\n');
}

export const count = (tests: FileResult['tests']): Totals => {
  const of = (outcome: string) => tests.filter((test) => test.outcome === outcome).length;
  return { passed: of('passed'), failed: of('failed'), skipped: of('skipped') };
};

export const sum = (totals: readonly Totals[]): Totals =>
  totals.reduce(
    (left, right) => ({
      passed: left.passed + right.passed,
      failed: left.failed + right.failed,
      skipped: left.skipped + right.skipped,
    }),
    { passed: 0, failed: 0, skipped: 0 },
  );

/** The last line of a run: `N passed, N failed`, and the number of skipped tests if there are any. */
export const totalLine = ({ passed, failed, skipped }: Totals): string =>
  `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
