import type { UsageTotal } from '../../src/client/usage_records.ts';
import { AsOf } from '../as_of.tsx';
import { isHistoryOn } from '../history.ts';
import { Bar } from '../meter.tsx';
import { Reading } from '../reading.tsx';
import { placement } from '../session.ts';
import { Table } from '../table.tsx';
import { numberText, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';

/** What a project used in each of the last months, by class, as numbers and as bars. */
export function Months({ project }: { readonly project: string }) {
  const { value, error, isLoading, at } = useLoaded(project, async (signal) => {
    const months = shownMonths(new Date());
    const query = { project_id: project, from: `${months.at(-1)}-01T00:00:00Z` };
    const totals = await placement.usageRecords.totals(['month', 'resource_class'], query, { signal });
    const table = monthTable(totals, months);
    const isOn = table.months.length > 0 || (await isHistoryOn(signal));
    return { ...table, isOn, present: months[0] };
  });
  return (
    <section aria-labelledby="months-heading">
      <h2 id="months-heading">What it used in the last months</h2>
      <AsOf at={at} />
      {error === undefined ? null : <Trouble error={error} what="What the project used in the last months" />}
      {value === undefined ? (
        <Reading isLoading={isLoading} />
      ) : value.months.length === 0 ? (
        <p class="faint">
          {value.isOn === true
            ? 'The history has nothing of this project yet.'
            : value.isOn === false
              ? 'This service keeps no history: it is off ([history] enabled). Nothing of this project is known.'
              : 'The history has nothing of this project, or is off ([history] enabled).'}
        </p>
      ) : (
        <>
          <p class="faint">
            Amounts times hours: a consumer that holds 2 PGPU for 3 hours uses 6. Each bar compares with the month of
            its class in which most was used. Months are those of UTC.
          </p>
          <Table
            name={`Months of project ${visible(project)}`}
            headings={['month', ...value.classes.map(({ name }) => ({ text: visible(name), kind: 'number' }) as const)]}
          >
            {value.months.map(({ month, hours }) => (
              <tr key={month}>
                <th scope="row" class="month">
                  {month}
                  {month === value.present ? <span class="faint"> so far</span> : ''}
                </th>
                {value.classes.map(({ name, most }) => {
                  const used = hours.get(name) ?? 0;
                  return (
                    <td key={name} class="number with-bar">
                      {hoursText(used)} <Bar part={most > 0 ? used / most : 0} kind="usual" />
                    </td>
                  );
                })}
              </tr>
            ))}
          </Table>
        </>
      )}
    </section>
  );
}

/** A small usage is never shown as 0. */
const hoursText = (hours: number): string => (hours > 0 && hours < 0.05 ? '<0.1' : numberText(hours));

/** Amounts times the hours for which they were held: by month, the newest first, and by class. */
type MonthTable = {
  readonly classes: readonly { readonly name: string; readonly most: number }[];
  readonly months: readonly { readonly month: string; readonly hours: ReadonlyMap<string, number> }[];
};

/** How many months are shown. */
const mostMonths = 12;

/** The shown months, the newest first: the present month of UTC and the months before it. */
const shownMonths = (now: Date): readonly string[] =>
  Array.from({ length: mostMonths }, (_, ago) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - ago)).toISOString().slice(0, 7),
  );

/** Makes the table of these months. It ends with the first month that has usage; later months without usage are shown. */
function monthTable(totals: readonly UsageTotal[], months: readonly string[]): MonthTable {
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
