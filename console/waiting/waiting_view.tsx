import { useRef, useState } from 'preact/hooks';
import type { WaitingClaim } from '../../src/client/waiting.ts';
import { CsvButton } from '../csv_button.tsx';
import { fieldsOf, find, trimmed } from '../filter.tsx';
import { Reading } from '../reading.tsx';
import { urlOf, useOfUrl, useRoute } from '../route.tsx';
import { placement } from '../session.ts';
import { counted, numberText } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';
import { useRenewal } from '../use_renewal.ts';
import { EndDialog } from './end_dialog.tsx';
import { WaitingTable, waitingText } from './waiting_table.tsx';

/** How many claims are shown. */
const mostShown = 200;

/** The claims that wait, by project and line, each with a button that ends its wait. */
export function WaitingView() {
  const { query } = useRoute();
  const filter = { project: query.get('project') ?? '', line: query.get('line') ?? '' };
  const [ending, setEnding] = useState<WaitingClaim>();
  const [notice, setNotice] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  const loaded = useLoaded(JSON.stringify(filter), (signal) => {
    const conditions = { project_id: filter.project || undefined, line: filter.line || undefined };
    return placement.waiting.page({ ...conditions, limit: mostShown + 1 }, { signal });
  });
  useRenewal(loaded);
  const { value, error, isLoading, again } = loaded;
  const shown = value?.slice(0, mostShown);
  const hasMore = (value?.length ?? 0) > mostShown;
  const close = (result?: string) => {
    setEnding(undefined);
    if (result === undefined) return;
    setNotice(result);
    again();
    // The button with the focus is removed with its row.
    heading.current?.focus();
  };
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        Waiting claims
      </h1>
      <Filter filter={filter} again={again} />
      <p role="status" class={notice === '' ? 'hidden' : undefined}>
        {notice}
      </p>
      {error === undefined ? null : (
        <Trouble error={error} what="The list of waiting claims" mayAskByProject={filter.project === ''} />
      )}
      {shown === undefined ? (
        <Reading isLoading={isLoading} />
      ) : shown.length === 0 ? (
        <p role="status">{filter.project === '' && filter.line === '' ? 'No claim waits.' : 'No such claim waits.'}</p>
      ) : (
        <>
          <p class="faint">
            {hasMore
              ? `The first ${numberText(mostShown)} claims; the project and the line lead to the others`
              : `${counted(shown.length, 'claim')}, in the order in which they came`}
          </p>
          <WaitingTable claims={shown} end={setEnding} />
          <CsvButton name="waiting" table={() => waitingText(shown)} />
        </>
      )}
      {ending === undefined ? null : <EndDialog claim={ending} close={close} />}
    </>
  );
}

type WaitingListFilter = { readonly project: string; readonly line: string };

function Filter({ filter, again }: { readonly filter: WaitingListFilter; readonly again: () => void }) {
  const [fields, setFields] = useOfUrl(filter);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    find(urlOf('waiting', undefined, trimmed(fields)), again);
  };
  const field = fieldsOf(fields, setFields);
  return (
    <form class="find" onSubmit={submit}>
      {field('project', 'Project')}
      {field('line', 'Line')}
      <button type="submit">Find</button>
    </form>
  );
}
