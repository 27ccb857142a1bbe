import type { Explanation } from '../../src/client/candidate_questions.ts';
import { Amount } from '../amount.tsx';
import { mirror } from '../mirror.ts';
import { ProviderLink } from '../provider_link.tsx';
import { Link, urlOf } from '../route.tsx';
import { useStore } from '../store.ts';
import { Table } from '../table.tsx';
import { counted, numberText, visible } from '../text.ts';
import { type QueryFields, searchOf, withoutCondition } from './query_fields.ts';
import { reasonOf } from './reason.ts';

/** How many trees each condition leaves, as a funnel, with a link to the query without it. */
export function Funnel({
  explanation: { trees, pools = 0, fitting, complete, conditions },
  fields,
}: {
  readonly explanation: Explanation;
  readonly fields: QueryFields;
}) {
  const end = conditions.findIndex(({ left }) => left === 0);
  const text = (value: number | null | undefined) =>
    value === undefined ? '' : value === null ? '?' : numberText(value);
  return (
    <>
      <p role="status">
        {fitting === null ? (
          'How many trees it fits is not known: that would take too much work.'
        ) : fitting === 0 ? (
          <strong>
            {trees === 0 ? 'It fits nowhere: there is no tree' : `It fits none of ${counted(trees, 'tree')}`}
            {poolsText(pools)}.
          </strong>
        ) : (
          <>
            It fits <strong>{numberText(fitting)}</strong> of {counted(trees, 'tree')}
            {poolsText(pools)}.
          </>
        )}
        {complete ? '' : ' Numbers that would take too much work to find are missing.'}
      </p>
      <Table
        name="Table of conditions"
        kind="funnel"
        headings={[
          'condition',
          { text: 'trees left by it and all before it', kind: 'bar-column' },
          { text: 'left', kind: 'number' },
          { text: 'alone', kind: 'number', title: 'trees that meet this condition' },
          { text: 'without', kind: 'number', title: 'trees that fit if this condition is dropped' },
          { text: 'largest', kind: 'number', title: 'the largest amount that fits, all else as asked' },
          { text: <span class="hidden">change of the query</span> },
        ]}
      >
        {conditions.map(({ parameter, value, alone, left, without, largest }, index) => {
          const before = index === 0 ? trees : (conditions[index - 1]?.left ?? trees);
          const others = withoutCondition(fields, parameter, value);
          const at = (count: number) => (trees === 0 ? 0 : (count / trees) * 100);
          return (
            <tr key={index} class={index === end ? 'end' : undefined}>
              <th scope="row">
                <span class="faint">{visible(parameter)}=</span>
                {visible(value)}
              </th>
              <td class="bar-column">
                <svg viewBox="0 0 100 14" preserveAspectRatio="none" aria-hidden="true">
                  <rect class="before" x={50 - at(before) / 2} y="1" width={at(before)} height="12" />
                  {left === null ? null : (
                    <rect class="left" x={50 - at(left) / 2} y="1" width={at(left)} height="12" />
                  )}
                </svg>
              </td>
              <td class="number strong">{text(left)}</td>
              <td class="number">{text(alone)}</td>
              <td class="number">{text(without)}</td>
              <td class="number">
                {typeof largest === 'number' ? <Amount of={value.split(':')[0] ?? ''} is={largest} /> : text(largest)}
              </td>
              <td>
                {others === undefined ? null : (
                  <Link to={urlOf('fit', undefined, searchOf(others))} label={visible(`Drop ${parameter}=${value}`)}>
                    Drop
                  </Link>
                )}
              </td>
            </tr>
          );
        })}
      </Table>
      {end === -1 ? null : (
        <p class="faint">
          The marked condition leaves no tree. “without”: how many would fit if a condition was dropped; “largest”: how
          much of the class would fit.
        </p>
      )}
    </>
  );
}

/** A pool of licences is a tree as well, and no host. */
const poolsText = (pools: number): string => (pools === 0 ? '' : `, ${numberText(pools)} of which only share`);

/** Trees that do not fit, the nearest first, and what each of them lacks. */
export function Nearest({ nearest }: { readonly nearest: Explanation['nearest'] }) {
  const { providers } = useStore(mirror);
  if (nearest.length === 0) return null;
  return (
    <Table name="Table of the nearest trees" headings={['tree', 'unmet condition', 'why']}>
      {nearest.flatMap(({ root, unmet }) =>
        unmet.map((condition, index) => (
          <tr key={`${root.uuid} ${index}`}>
            {index === 0 ? (
              <th scope="rowgroup" rowSpan={unmet.length}>
                <ProviderLink uuid={root.uuid} name={root.name} />
              </th>
            ) : null}
            <td>
              <span class="faint">{visible(condition.parameter)}=</span>
              {visible(condition.value)}
            </td>
            <td class="condition">{reasonOf(condition, providers)}</td>
          </tr>
        )),
      )}
    </Table>
  );
}
