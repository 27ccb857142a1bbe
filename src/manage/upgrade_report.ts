import { cellTable, wrapped } from './boxed_table.ts';
import { type CheckResult, failure, success, warning } from './upgrade_checks.ts';

const title = 'Upgrade Check Results';
const words = { [success]: 'Success', [warning]: 'Warning', [failure]: 'Failure' } as const;

/** The results as the box that `placement-status upgrade check` prints. */
export function reportTable(results: readonly CheckResult[]): string {
  const cells = results.map(({ check, result, details }) => [
    `Check: ${check}`,
    `Result: ${words[result]}`,
    // Upstream breaks the details alone, at 60, and puts the first line behind their name.
    ...wrapped(details ?? 'None', 60, '  ').map((line, place) => (place === 0 ? `Details: ${line}` : line)),
  ]);
  return cellTable([[title], ...cells]);
}

/** The results as `--json` prints them. */
export const reportJson = (results: readonly CheckResult[]): string => JSON.stringify({ name: title, checks: results });
