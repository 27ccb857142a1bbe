import type { Holding } from '../../src/client/holdings.ts';
import { Age } from '../age.tsx';
import { Amount } from '../amount.tsx';
import { ConsumerLink } from '../consumer_link.tsx';
import { CsvButton } from '../csv_button.tsx';
import { classOrder } from '../fleet/trees.ts';
import { ProviderLink } from '../provider_link.tsx';
import { Link, navigate } from '../route.tsx';
import { type Sortable, sortableAge, sortableEnd, sortedBy, sortHeading, sortOf } from '../sort.tsx';
import { Table } from '../table.tsx';
import { counted, timeText, visible } from '../text.ts';
import { type HolderFilter, urlOfHoldings } from './holder_filter.ts';

/** What consumers hold, a row for each consumer and provider. `isPart`: there are more of them on other pages. */
export function HoldingTable({
  holdings,
  filter,
  isPart,
}: {
  readonly holdings: readonly Holding[];
  readonly filter: HolderFilter;
  readonly isPart: boolean;
}) {
  const sort = sortOf(filter.sort);
  const choose = (next: string) => navigate(urlOfHoldings({ ...filter, sort: next }), 'replace');
  const heading = (by: string, text: string, isNumber = false) => sortHeading(by, text, { sort, isNumber, choose });
  // Where each provider is a root, a column of roots would say the same again.
  const hasTrees = holdings.some(({ resource_provider, root }) => resource_provider.uuid !== root.uuid);
  const classes = [...new Set(holdings.flatMap(({ resources }) => Object.keys(resources)))].sort(classOrder);
  const hasTerms = holdings.some(({ expires_at }) => expires_at);
  const sorted = sortedBy(holdings, sort, valueIn);
  return (
    <>
      {isPart && sort.by !== '' ? <p class="faint">The order is of this page.</p> : null}
      <Table
        name={`Table of ${counted(holdings.length, 'holding')}`}
        headings={[
          heading('name', 'consumer'),
          heading('project', 'project'),
          heading('user', 'user'),
          heading('provider', 'provider'),
          hasTrees ? heading('root', 'root') : undefined,
          ...classes.map((name) => heading(name, visible(name), true)),
          heading('age', 'since', true),
          hasTerms ? heading('until', 'until') : undefined,
        ]}
      >
        {sorted.map((holding) => {
          const { consumer, name, project_id: project, user_id: user, resource_provider: provider, root } = holding;
          return (
            <tr key={`${consumer} ${provider.uuid}`}>
              <th scope="row">
                <ConsumerLink uuid={consumer} name={name} />
              </th>
              <td>
                <Link to={urlOfHoldings({ project })}>
                  <bdi>{visible(project)}</bdi>
                </Link>
              </td>
              <td>
                <bdi>{visible(user)}</bdi>
              </td>
              <td>
                <ProviderLink uuid={provider.uuid} name={provider.name} />
              </td>
              {hasTrees ? (
                <td>
                  <ProviderLink uuid={root.uuid} name={root.name} />
                </td>
              ) : null}
              {classes.map((name) => (
                <td key={name} class="number">
                  {holding.resources[name] === undefined ? '' : <Amount of={name} is={holding.resources[name]} />}
                </td>
              ))}
              <td class="number time">
                <Age at={holding.since} />
              </td>
              {hasTerms ? <td class="time">{timeText(holding.expires_at)}</td> : null}
            </tr>
          );
        })}
      </Table>
      <CsvButton
        name="holdings"
        table={() => ({
          head: ['consumer', 'name', 'project', 'user', 'provider', 'root', ...classes, 'since', 'until'],
          rows: sorted.map((each) => [
            each.consumer,
            each.name ?? undefined,
            each.project_id,
            each.user_id,
            each.resource_provider.name,
            each.root.name,
            ...classes.map((resourceClass) => each.resources[resourceClass]),
            each.since ?? undefined,
            each.expires_at ?? undefined,
          ]),
        })}
      />
    </>
  );
}

/** What a holding has in a column. */
function valueIn(holding: Holding, by: string): Sortable {
  switch (by) {
    case 'name':
      return holding.name ?? holding.consumer;
    case 'project':
      return holding.project_id;
    case 'user':
      return holding.user_id;
    case 'provider':
      return holding.resource_provider.name;
    case 'root':
      return holding.root.name;
    case 'age':
      return sortableAge(holding.since);
    case 'until':
      return sortableEnd(holding.expires_at);
    default:
      return holding.resources[by];
  }
}
