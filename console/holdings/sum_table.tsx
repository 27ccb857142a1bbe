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
import { useLoaded } from '../use_loaded.ts';
import { type Asked, urlOfHoldings } from './asked.ts';
import { readAllHoldings } from './read_holdings.ts';
import { type HoldingSum, openSums, type SumKey } from './sum_holdings.ts';

/** The most consumers first. */
const usualSort = '-consumers';

/** What is held by project, user or type. All that was asked for is read once; a button reads it again. */
export function SumTable({ asked, by }: { readonly asked: Asked; readonly by: SumKey }) {
  const { sort: _, after: __, ...key } = asked;
  const { value, error, isLoading, again, at } = useLoaded(JSON.stringify(key), async (signal) => {
    const sums = openSums(by);
    for await (const page of readAllHoldings(asked, signal)) sums.add(page);
    return sums.sums();
  });
  const sort = sortOf(asked.sort || usualSort);
  const choose = (next: string) =>
    navigate(urlOfHoldings({ ...asked, sort: next === usualSort ? '' : next }), 'replace');
  const heading = (name: string, text: string, isNumber = true) => sortHeading(name, text, { sort, isNumber, choose });
  const classes = [...new Set((value ?? []).flatMap(({ amounts }) => [...amounts.keys()]))].sort(classOrder);
  const rows = sortedBy(sortedBy(value ?? [], sortOf('key'), valueIn), sort, valueIn);
  const filterBy = (each: string): Partial<Asked> => (by === 'type' ? {} : { [by]: each });
  return (
    <section>
      <div class="heading-row">
        <AsOf at={at} />
        <button type="button" class="small" onClick={again} disabled={isLoading}>
          Read again
        </button>
      </div>
      {error === undefined ? null : <Trouble error={error} what="What is held" />}
      {value === undefined ? (
        <Reading isLoading={isLoading} text="Reading all that is held…" />
      ) : rows.length === 0 ? (
        <p role="status">No consumer holds this.</p>
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
                    <Link to={urlOfHoldings({ ...asked, ...filterBy(each), sum: '', sort: '' })}>
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
