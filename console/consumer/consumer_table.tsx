import type { Consumer } from '../../src/client/consumers.ts';
import { Amount } from '../amount.tsx';
import { ConsumerLink } from '../consumer_link.tsx';
import { CsvButton } from '../csv_button.tsx';
import { classOrder } from '../fleet/trees.ts';
import { changed, navigate, urlOf, useRoute } from '../route.tsx';
import { type Sort, sortHeading, sortOf } from '../sort.tsx';
import { Table } from '../table.tsx';
import { ageText, counted, timeText, visible } from '../text.ts';
import type { HeldAmounts } from './read_amounts.ts';

const byText = new Intl.Collator('en', { numeric: true });

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
        {sorted(consumers, amounts, sort).map((consumer) => {
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
                {created_at === null ? (
                  '—'
                ) : (
                  <time dateTime={created_at} title={timeText(created_at)}>
                    {ageText(created_at)}
                  </time>
                )}
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
          rows: sorted(consumers, amounts, sort).map((each) => [
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

/** Consumers in an order; without one in that of the service, which is by UUID. */
function sorted(
  consumers: readonly Consumer[],
  amounts: HeldAmounts | undefined,
  { by, isDown }: Sort,
): readonly Consumer[] {
  if (by === '') return consumers;
  const texts: Readonly<Record<string, (consumer: Consumer) => string>> = {
    name: ({ name, uuid }) => name ?? uuid,
    type: ({ consumer_type }) => consumer_type,
    project: ({ project_id }) => project_id,
    user: ({ user_id }) => user_id,
    // What lasts comes after what ends.
    until: ({ expires_at }) => expires_at ?? '~',
  };
  const text = texts[by];
  const value = ({ uuid, created_at }: Consumer): number =>
    by === 'age' ? -Date.parse(created_at ?? '') || 0 : (amounts?.get(uuid)?.[by] ?? -1);
  const sign = isDown ? -1 : 1;
  return consumers.toSorted((a, b) =>
    text === undefined ? sign * (value(a) - value(b)) : sign * byText.compare(text(a), text(b)),
  );
}
