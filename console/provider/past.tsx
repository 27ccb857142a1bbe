import { useState } from 'preact/hooks';
import type { UsageRecord } from '../../src/client/usage_records.ts';
import { Amount } from '../amount.tsx';
import { AsOf } from '../as_of.tsx';
import { ConsumerLink } from '../consumer_link.tsx';
import { isHistoryOn } from '../history.ts';
import { ProviderLink } from '../provider_link.tsx';
import { placement } from '../session.ts';
import { Table } from '../table.tsx';
import { counted, numberText, timeText, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';

/** The period of the records in hours, how many records are read, and how many are shown. */
const hours = 24;
const mostRead = 10_000;
const mostShown = 100;

/** The consumers that had something of a provider, or of its tree, and no longer have it: read once it is opened. */
export function Past({ provider, isOfTree }: { readonly provider: string; readonly isOfTree: boolean }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Who had it before, in the last {hours} hours</summary>
      {isOpen ? <PastTable provider={provider} isOfTree={isOfTree} /> : null}
    </details>
  );
}

function PastTable({ provider, isOfTree }: { readonly provider: string; readonly isOfTree: boolean }) {
  const { value, error, at } = useLoaded(`${provider} ${isOfTree}`, async (signal) => {
    const where = isOfTree ? { in_tree: provider } : { resource_provider: provider };
    const from = new Date(Date.now() - hours * 3_600_000);
    const records: UsageRecord[] = [];
    for await (const record of placement.usageRecords.list({ ...where, from, open: false }, { signal })) {
      records.push(record);
      if (records.length === mostRead) break;
    }
    return { records, isOn: records.length > 0 || (await isHistoryOn(signal)) };
  });
  if (error !== undefined) return <Trouble error={error} what="The history" />;
  if (value === undefined) return <p class="faint">Reading…</p>;
  const { records, isOn } = value;
  if (records.length === 0) {
    return (
      <p role="status">
        {isOn === true
          ? 'No consumer has held anything of it that has ended since.'
          : 'Nothing is known: the history of this service is off ([history] enabled), or has nothing of this provider.'}
      </p>
    );
  }
  // They come in the order of their ends.
  const shown = records.toReversed().slice(0, mostShown);
  return (
    <>
      <AsOf at={at} />
      <p class="faint">
        {shown.length < records.length ? `The last ${numberText(shown.length)} of ` : ''}
        {records.length === mostRead ? 'the first ' : ''}
        {counted(records.length, 'record')}, the newest end first
      </p>
      <Table
        name={`Table of ${counted(shown.length, 'record')} of the past`}
        kind="cards"
        headings={[
          'consumer',
          'provider',
          { text: 'amount', kind: 'number' },
          'project',
          'user',
          'from',
          'until',
          'ended by',
        ]}
      >
        {shown.map((record, index) => (
          <tr key={index}>
            <th scope="row">
              <ConsumerLink uuid={record.consumer} name={record.name} />
            </th>
            <td data-label="provider">
              <ProviderLink uuid={record.resource_provider.uuid} name={record.resource_provider.name} />
            </td>
            <td data-label="amount" class="number">
              <Amount of={record.resource_class} is={record.amount} /> {visible(record.resource_class)}
            </td>
            <td data-label="project">
              <bdi>{visible(record.project_id)}</bdi>
            </td>
            <td data-label="user">
              <bdi>{visible(record.user_id)}</bdi>
            </td>
            <td data-label="from" class="time">
              {timeText(record.from)}
            </td>
            <td data-label="until" class="time">
              {timeText(record.until)}
            </td>
            <td data-label="ended by">{record.ended === null ? '—' : endings[record.ended]}</td>
          </tr>
        ))}
      </Table>
    </>
  );
}

/** Why a record was closed, in words. */
const endings: Readonly<Record<NonNullable<UsageRecord['ended']>, string>> = {
  released: 'its release',
  rewritten: 'another amount',
  moved: 'a move to another provider',
  term: 'its term',
  owner: 'a change of its owner',
};
