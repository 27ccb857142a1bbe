import { Amount } from '../amount.tsx';
import { AsOf } from '../as_of.tsx';
import { CsvButton } from '../csv_button.tsx';
import { classOrder } from '../fleet/trees.ts';
import { Reading } from '../reading.tsx';
import { Link, navigate } from '../route.tsx';
import { type Sortable, sortedBy, sortHeading, sortOf } from '../sort.tsx';
import { Table } from '../table.tsx';
import { counted, numberText, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { type Loaded, useLoaded } from '../use_loaded.ts';
import { type HolderFilter, urlOfHoldings } from './holder_filter.ts';
import { readAllHoldings } from './read_holdings.ts';
import { type HoldingSum, openSums, type SumKey } from './sum_holdings.ts';

/** The most consumers first. */
const usualSort = '-consumers';

/** The sums; undefined if no provider has the name of the filter. */
type Sums = { readonly sums: readonly HoldingSum[] | undefined };

/** Reads all holdings of the filter once; a button reads them again. @param by undefined: nothing is read */
export function useSums(filter: HolderFilter, by: SumKey | undefined): Loaded<Sums> {
  const { sort: _, after: __, ...key } = filter;
  return useLoaded(by && JSON.stringify(key), async (signal) => {
    const pages = await readAllHoldings(filter, signal);
    if (by === undefined || pages === undefined) return { sums: undefined };
    const sums = openSums(by);
    for await (const page of pages) sums.add(page);
    return { sums: sums.sums() };
  });
}

/** Holdings by project, user or type. */
export function SumTable({
  filter,
  by,
  loaded: { value, error, isLoading, again, at },
}: {
  readonly filter: HolderFilter;
  readonly by: SumKey;
  readonly loaded: Loaded<Sums>;
}) {
  const sort = sortOf(filter.sort || usualSort);
  const choose = (next: string) =>
    navigate(urlOfHoldings({ ...filter, sort: next === usualSort ? '' : next }), 'replace');
  const heading = (name: string, text: string, isNumber = true) => sortHeading(name, text, { sort, isNumber, choose });
  const classes = [...new Set((value?.sums ?? []).flatMap(({ amounts }) => [...amounts.keys()]))].sort(classOrder);
  const rows = sortedBy(sortedBy(value?.sums ?? [], sortOf('key'), valueIn), sort, valueIn);
  const filterBy = (each: string): Partial<HolderFilter> => (by === 'type' ? {} : { [by]: each });
  return (
    <section>
      <div class="heading-row">
        <AsOf at={at} />
        {/* A disabled button would lose the focus. */}
        <button type="button" class="small" onClick={() => isLoading || again()} aria-disabled={isLoading}>
          Read again
        </button>
      </div>
      {error === undefined ? null : <Trouble error={error} what="What is held" />}
      {value === undefined ? (
        <Reading isLoading={isLoading} text="Reading all that is held…" />
      ) : rows.length === 0 ? (
        <p role="status">{value.sums === undefined ? 'No provider has this name.' : 'No consumer holds this.'}</p>
      ) : (
        <>
          <Table
            name={`Table of ${counted(rows.length, by)}`}
            headings={[
              heading('key', by, false),
              heading('consumers', 'consumers'),
              ...classes.map((name) => heading(name, visible(name))),
            ]}
          >
            {rows.map(({ key: each, consumers, amounts }) => (
              <tr key={each}>
                <th scope="row">
                  {by === 'type' ? (
                    visible(each)
                  ) : (
                    <Link to={urlOfHoldings({ ...filter, ...filterBy(each), sum: '', sort: '' })}>
                      <bdi>{visible(each)}</bdi>
                    </Link>
                  )}
                </th>
                <td class="number">{numberText(consumers)}</td>
                {classes.map((name) => (
                  <td key={name} class="number">
                    {amounts.has(name) ? <Amount of={name} is={amounts.get(name) ?? 0} /> : ''}
                  </td>
                ))}
              </tr>
            ))}
          </Table>
          <CsvButton
            name={`held-by-${by}`}
            table={() => ({
              head: [by, 'consumers', ...classes],
              rows: rows.map(({ key: each, consumers, amounts }) => [
                each,
                consumers,
                ...classes.map((name) => amounts.get(name)),
              ]),
            })}
          />
        </>
      )}
    </section>
  );
}

/** What a sum has in a column. */
const valueIn = ({ key, consumers, amounts }: HoldingSum, by: string): Sortable =>
  by === 'key' ? key : by === 'consumers' ? consumers : amounts.get(by);
