import { escapeControlsInJson } from '../text/controls.ts';
import { cellTable, wrapped } from './boxed_table.ts';
import { type CheckResult, failure, success, warning } from './upgrade_checks.ts';

const title = 'Upgrade Check Results';
const words = { [success]: 'Success', [warning]: 'Warning', [failure]: 'Failure' } as const;

/** The results as a table, as `placement-status upgrade check` prints them. */
export function reportTable(results: readonly CheckResult[]): string {
  const cells = results.map(({ check, result, details }) => [
    `Check: ${check}`,
    `Result: ${words[result]}`,
    // Upstream breaks only the details into lines, at 60 columns, and puts "Details:" before the first line.
    ...wrapped(details ?? 'None', 60, '  ').map((line, place) => (place === 0 ? `Details: ${line}` : line)),
  ]);
  return cellTable([[title], ...cells]);
}

/** The results as `--json` prints them. */
export const reportJson = (results: readonly CheckResult[]): string =>
  escapeControlsInJson(JSON.stringify({ name: title, checks: results }));
