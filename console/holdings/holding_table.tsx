import type { Holding } from '../../src/client/holdings.ts';
import { ResourcesText } from '../amount.tsx';
import { ConsumerLink } from '../consumer_link.tsx';
import { CsvButton } from '../csv_button.tsx';
import { classOrder } from '../fleet/trees.ts';
import { ProviderLink } from '../provider_link.tsx';
import { Link } from '../route.tsx';
import { Table } from '../table.tsx';
import { counted, timeText, visible } from '../text.ts';
import { urlOfHoldings } from './asked.ts';

/** What consumers hold, a row for each consumer and provider. */
export function HoldingTable({ holdings }: { readonly holdings: readonly Holding[] }) {
  // Where each provider is a root, a column of roots would say the same again.
  const hasTrees = holdings.some(({ resource_provider, root }) => resource_provider.uuid !== root.uuid);
  const classes = [...new Set(holdings.flatMap(({ resources }) => Object.keys(resources)))].sort(classOrder);
  return (
    <>
      <Table
        name={`Table of ${counted(holdings.length, 'holding')}`}
        headings={['consumer', 'project', 'user', 'provider', hasTrees ? 'root' : undefined, 'holds', 'since', 'until']}
      >
        {holdings.map((holding) => {
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
              <td class="resources">
                <ResourcesText resources={holding.resources} />
              </td>
              <td class="time">{timeText(holding.since)}</td>
              <td class="time">{timeText(holding.expires_at)}</td>
            </tr>
          );
        })}
      </Table>
      <CsvButton
        name="holdings"
        table={() => ({
          head: ['consumer', 'name', 'project', 'user', 'provider', 'root', ...classes, 'since', 'until'],
          rows: holdings.map((each) => [
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
