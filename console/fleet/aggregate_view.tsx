import { useEffect, useMemo } from 'preact/hooks';
import type { TextTable } from '../../src/cli/table.ts';
import { Copy } from '../copy.tsx';
import { CsvButton } from '../csv_button.tsx';
import { AmountBars, Bar } from '../meter.tsx';
import { mirror, openMirror } from '../mirror.ts';
import { changed, Link, navigate, urlOf, useRoute } from '../route.tsx';
import { type Sortable, sortedBy, sortHeading, sortOf } from '../sort.tsx';
import { useStore } from '../store.ts';
import { Table } from '../table.tsx';
import { counted, numberText, percentText, visible } from '../text.ts';
import { useTitle } from '../title.ts';
import { NoUuid, Trouble } from '../trouble.tsx';
import { uuidOf } from '../uuid.ts';
import { FleetTable } from './fleet_table.tsx';
import { aggregatesOf, type Group } from './grouping.ts';
import { commonClass, fullness, sumOf } from './trees.ts';
import { useTrees } from './use_trees.ts';

/** All aggregates with their totals, or one with its totals and its providers. */
export function AggregateView({ id }: { readonly id: string | undefined }) {
  useEffect(openMirror, []);
  const { isComplete, error } = useStore(mirror);
  const trees = useTrees();
  const groups = useMemo(() => aggregatesOf(trees), [trees]);
  const uuid = uuidOf(id ?? '');
  if (id !== undefined && uuid === undefined) return <NoUuid title="Aggregate" text={id} />;
  const usualClass = commonClass(trees);
  const group = groups.find(({ key }) => key === uuid);
  return (
    <>
      {error === undefined ? null : <Trouble error={error} what="The fleet" />}
      {id === undefined ? (
        error === undefined || groups.length > 0 ? (
          <AllAggregates groups={groups} isComplete={isComplete} />
        ) : null
      ) : group !== undefined ? (
        <OneAggregate group={group} usualClass={usualClass} />
      ) : (
        <>
          <h1>Aggregate</h1>
          <p role="status">
            {isComplete ? 'No provider is in an aggregate with this UUID.' : error === undefined ? 'Reading…' : ''}
          </p>
        </>
      )}
    </>
  );
}

/** What an aggregate has in a column: its name, how many trees, or how full it is of a class. */
function valueIn({ label, trees, sums }: Group, by: string): Sortable {
  if (by === 'aggregate') return label;
  if (by === 'trees') return trees.length;
  const part = fullness(sums.get(by), 'capacity');
  return Number.isNaN(part) ? undefined : part;
}

/** All aggregates as text, with exact numbers. */
const textOf = (groups: readonly Group[], classes: readonly string[]): TextTable => ({
  head: ['aggregate', 'uuid', 'trees', ...classes.flatMap((name) => [`${name} used`, `${name} capacity`])],
  rows: groups.map(({ key, label, trees, sums }) => [
    label,
    key,
    trees.length,
    ...classes.flatMap((name) => [sums.get(name)?.used ?? '', sums.get(name)?.capacity ?? '']),
  ]),
});

function AllAggregates({ groups, isComplete }: { readonly groups: readonly Group[]; readonly isComplete: boolean }) {
  const { query } = useRoute();
  const sort = sortOf(query.get('sort') ?? '');
  const choose = (by: string) => navigate(urlOf('aggregates', undefined, changed(query, { sort: by })), 'replace');
  const shown = sortedBy(groups, sort, valueIn);
  const classes = [...sumOf(groups.map(({ sums }) => sums)).keys()];
  return (
    <>
      <h1>Aggregates</h1>
      <p class="faint" role="status">
        {isComplete ? counted(groups.length, 'aggregate') : 'Reading…'}. An aggregate has no name: it is called by the
        common beginning of the names of its providers. How full each is:
      </p>
      {groups.length === 0 ? null : (
        <>
          <Table
            name="Table of aggregates"
            headings={[
              sortHeading('aggregate', 'aggregate', { sort, isNumber: false, choose }),
              ...['trees', ...classes].map((name) =>
                sortHeading(name, visible(name), { sort, isNumber: true, choose }),
              ),
            ]}
          >
            {shown.map(({ key, label, trees, sums }) => (
              <tr key={key}>
                <th scope="row">
                  <Link to={urlOf('aggregates', key)}>{label}</Link>
                </th>
                <td class="number">{numberText(trees.length)}</td>
                {classes.map((name) => {
                  const part = fullness(sums.get(name), 'capacity');
                  return (
                    <td key={name} class="number with-bar">
                      {percentText(part)} <Bar part={part} />
                    </td>
                  );
                })}
              </tr>
            ))}
          </Table>
          <CsvButton name="aggregates" table={() => textOf(shown, classes)} />
        </>
      )}
    </>
  );
}

function OneAggregate({ group, usualClass }: { readonly group: Group; readonly usualClass: string }) {
  const { query } = useRoute();
  const { key, label, trees, sums } = group;
  const resourceClass = query.get('class') ?? usualClass;
  useTitle(key, label);
  const urlWith = (values: Readonly<Record<string, string>>) => urlOf('aggregates', key, changed(query, values));
  const resources = [...sums.keys()].map((name) => `${name}:1`).join(',');
  return (
    <>
      <header class="view-header">
        <p class="faint">aggregate of {counted(trees.length, 'tree')}</p>
        <h1>{label}</h1>
        <p class="faint">
          <code>{key}</code> <Copy text={key} what="the UUID" /> ·{' '}
          <Link to={urlOf('fit', undefined, { resources, member_of: key })}>what fits here?</Link>
        </p>
      </header>
      <section class="totals">
        <h2>All together</h2>
        <AmountBars amounts={sums} />
      </section>
      <section>
        <h2>Its providers by {visible(resourceClass)}</h2>
        <p>
          {[...sums.keys()].map((name, index) => (
            <span key={name}>
              {index === 0 ? '' : ', '}
              <Link to={urlWith({ class: name })} current={name === resourceClass}>
                {visible(name)}
              </Link>
            </span>
          ))}
        </p>
        <FleetTable
          groups={[group]}
          resourceClass={resourceClass}
          measure="capacity"
          search=""
          sort={query.get('sort') ?? ''}
          page={Number(query.get('page') ?? 1)}
          urlWith={urlWith}
        />
      </section>
    </>
  );
}
