import type { Consumer } from '../../src/client/consumers.ts';
import type { Resources } from '../../src/client/filters.ts';
import { Age } from '../age.tsx';
import { Amount } from '../amount.tsx';
import { ConsumerLink } from '../consumer_link.tsx';
import { CsvButton } from '../csv_button.tsx';
import { classOrder } from '../fleet/trees.ts';
import { changed, navigate, urlOf, useRoute } from '../route.tsx';
import { type Sortable, sortableAge, sortableEnd, sortedBy, sortHeading, sortOf } from '../sort.tsx';
import { Table } from '../table.tsx';
import { counted, timeText, visible } from '../text.ts';
import type { HeldAmounts } from './read_amounts.ts';

/** Consumers as rows, with what each has where that is known. `isPart`: there are more of them on other pages. */
export function ConsumerTable({
  consumers,
  amounts,
  isPart,
}: {
  readonly consumers: readonly Consumer[];
  readonly amounts: HeldAmounts | undefined;
  readonly isPart: boolean;
}) {
  const { view, id, query } = useRoute();
  const sort = sortOf(query.get('sort') ?? '');
  const choose = (next: string) => navigate(urlOf(view, id, changed(query, { sort: next })), 'replace');
  const heading = (by: string, text: string, isNumber = false) => sortHeading(by, text, { sort, isNumber, choose });
  const classes = [...new Set([...(amounts?.values() ?? [])].flatMap((resources) => Object.keys(resources)))].sort(
    classOrder,
  );
  const sorted = sortedBy(consumers, sort, (each, by) => valueIn(each, amounts?.get(each.uuid), by));
  const hasTerms = consumers.some(({ expires_at }) => expires_at);
  return (
    <>
      {isPart && sort.by !== '' ? <p class="faint">The order is of this page.</p> : null}
      <Table
        name={`Table of ${counted(consumers.length, 'consumer')}`}
        headings={[
          heading('name', 'consumer'),
          ...classes.map((name) => heading(name, visible(name), true)),
          heading('type', 'type'),
          heading('project', 'project'),
          heading('user', 'user'),
          heading('age', 'since', true),
          hasTerms ? heading('until', 'until') : undefined,
        ]}
      >
        {sorted.map((consumer) => {
          const { uuid, name, consumer_type, project_id, user_id, created_at, expires_at } = consumer;
          const has = amounts?.get(uuid) ?? {};
          return (
            <tr key={uuid}>
              <th scope="row">
                <ConsumerLink uuid={uuid} name={name} />
              </th>
              {classes.map((resourceClass) => (
                <td key={resourceClass} class="number">
                  {has[resourceClass] === undefined ? '' : <Amount of={resourceClass} is={has[resourceClass]} />}
                </td>
              ))}
              <td>{visible(consumer_type)}</td>
              <td>
                <bdi>{visible(project_id)}</bdi>
              </td>
              <td>
                <bdi>{visible(user_id)}</bdi>
              </td>
              <td class="number time">
                <Age at={created_at} />
              </td>
              {hasTerms ? <td class="time">{timeText(expires_at)}</td> : null}
            </tr>
          );
        })}
      </Table>
      <CsvButton
        name="consumers"
        table={() => ({
          head: ['uuid', 'name', ...classes, 'type', 'project', 'user', 'since', 'until'],
          rows: sorted.map((each) => [
            each.uuid,
            each.name ?? undefined,
            ...classes.map((resourceClass) => amounts?.get(each.uuid)?.[resourceClass]),
            each.consumer_type,
            each.project_id,
            each.user_id,
            each.created_at ?? undefined,
            each.expires_at ?? undefined,
          ]),
        })}
      />
    </>
  );
}

/** What a consumer has in a column. */
function valueIn(consumer: Consumer, resources: Resources | undefined, by: string): Sortable {
  switch (by) {
    case 'name':
      return consumer.name ?? consumer.uuid;
    case 'type':
      return consumer.consumer_type;
    case 'project':
      return consumer.project_id;
    case 'user':
      return consumer.user_id;
    case 'age':
      return sortableAge(consumer.created_at);
    case 'until':
      return sortableEnd(consumer.expires_at);
    default:
      return resources?.[by];
  }
}
