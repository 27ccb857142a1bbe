import type { UsageTotal } from '../../src/client/usage_records.ts';

/** Amounts times the hours for which they were held: by month, the newest first, and by class. */
export type MonthTable = {
  readonly classes: readonly { readonly name: string; readonly most: number }[];
  readonly months: readonly { readonly month: string; readonly hours: ReadonlyMap<string, number> }[];
};

/** How many months are shown. */
const mostMonths = 12;

/** The shown months, the newest first: the present month of UTC and the months before it. */
export const shownMonths = (now: Date): readonly string[] =>
  Array.from({ length: mostMonths }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );

/** Makes the table of these months. It ends with the first month that has usage; later months without usage are shown. */
export function monthTable(totals: readonly UsageTotal[], months: readonly string[]): MonthTable {
  const shown = totals.filter(({ month = '' }) => months.includes(month));
  const byMonth = Map.groupBy(shown, ({ month = '' }) => month);
  const byClass = Map.groupBy(shown, ({ resource_class: name = '' }) => name);
  return {
    classes: [...byClass]
      .map(([name, each]) => ({ name, most: Math.max(...each.map(({ amount_hours: hours }) => hours)) }))
      .sort((a, b) => (a.name < b.name ? -1 : 1)),
    months: months.slice(0, months.findLastIndex((month) => byMonth.has(month)) + 1).map((month) => ({
      month,
      hours: new Map(byMonth.get(month)?.map(({ resource_class: name = '', amount_hours: hours }) => [name, hours])),
    })),
  };
}
