import { useEffect, useRef, useState } from 'preact/hooks';
import type { WaitingClaim } from '../../src/client/waiting.ts';
import { ConsumerLink, consumerText, type Named } from '../consumer_link.tsx';
import { fieldsOf, find } from '../filter.tsx';
import { Link, urlOf, useRoute } from '../route.tsx';
import { placement } from '../session.ts';
import { Table } from '../table.tsx';
import { ageText, counted, numberText, timeText, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';
import { useRenewal } from '../use_renewal.ts';
import { EndDialog } from './end_dialog.tsx';

/** How many claims are shown. */
const mostShown = 200;
/** How many consumers of a claim are shown at once; the others are opened. */
const mostConsumers = 3;

/** The claims that wait, by project and line, and a button for each that ends its wait. */
export function WaitingView() {
  const { query } = useRoute();
  const asked = { project: query.get('project') ?? '', line: query.get('line') ?? '' };
  const [ending, setEnding] = useState<WaitingClaim>();
  const [told, setTold] = useState('');
  const heading = useRef<HTMLHeadingElement>(null);
  const loaded = useLoaded(JSON.stringify(asked), (signal) => {
    const filter = { project_id: asked.project || undefined, line: asked.line || undefined };
    return placement.waiting.page({ ...filter, limit: mostShown + 1 }, { signal });
  });
  useRenewal(loaded);
  const { value, error, isLoading, again } = loaded;
  const shown = value?.slice(0, mostShown);
  const hasMore = (value?.length ?? 0) > mostShown;
  const close = (result?: string) => {
    setEnding(undefined);
    if (result === undefined) return;
    setTold(result);
    again();
    // The button that had the focus goes with its row.
    heading.current?.focus();
  };
  return (
    <>
      <h1 ref={heading} tabIndex={-1}>
        Waiting claims
      </h1>
      <Filter asked={asked} again={again} />
      <p role="status" class={told === '' ? 'hidden' : undefined}>
        {told}
      </p>
      {error === undefined ? null : <Trouble error={error} what="The list of waiting claims" />}
      {shown === undefined ? (
        isLoading ? (
          <p class="faint">Reading…</p>
        ) : null
      ) : shown.length === 0 ? (
        <p role="status">{asked.project === '' && asked.line === '' ? 'No claim waits.' : 'No such claim waits.'}</p>
      ) : (
        <>
          <p class="faint">
            {hasMore
              ? `The first ${numberText(mostShown)} claims; the project and the line lead to the others`
              : `${counted(shown.length, 'claim')}, in the order in which they came`}
          </p>
          <WaitingTable claims={shown} end={setEnding} />
        </>
      )}
      {ending === undefined ? null : <EndDialog claim={ending} close={close} />}
    </>
  );
}

type Asked = { readonly project: string; readonly line: string };

function Filter({ asked, again }: { readonly asked: Asked; readonly again: () => void }) {
  const [fields, setFields] = useState(asked);
  // Links of this view lead to another project or line.
  useEffect(() => setFields(asked), [asked.project, asked.line]);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    find(urlOf('waiting', undefined, fields), again);
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

function WaitingTable({
  claims,
  end,
}: {
  readonly claims: readonly WaitingClaim[];
  readonly end: (claim: WaitingClaim) => void;
}) {
  return (
    <Table
      name={`Table of ${counted(claims.length, 'waiting claim')}`}
      headings={[
        'consumers',
        'project',
        'user',
        'line',
        { text: 'place', kind: 'number', title: 'in its line; without one, in its process of the service' },
        'waits for',
        'condition',
        'since',
        'until',
        { text: <span class="hidden">end of the wait</span> },
      ]}
    >
      {claims.map((claim) => {
        const { project_id: project, user_id: user, line, since } = claim;
        const consumers = claim.consumers.map((uuid, place) => ({ uuid, name: claim.names?.[place] }));
        const [first = { uuid: '', name: undefined }] = consumers;
        return (
          <tr key={claim.consumers.join()}>
            <th scope="row">
              <Consumers consumers={consumers} />
            </th>
            <td>
              <Link to={urlOf('limits', project)}>
                <bdi>{visible(project)}</bdi>
              </Link>
            </td>
            <td>
              <bdi>{visible(user)}</bdi>
            </td>
            <td>
              {line === null ? (
                '—'
              ) : (
                <Link to={urlOf('waiting', undefined, { project, line })}>
                  <bdi>{visible(line)}</bdi>
                </Link>
              )}
            </td>
            <td class="number">{numberText(claim.place)}</td>
            <td>{claim.waits_for}</td>
            <td class="condition">{claim.condition === '' ? '—' : visible(claim.condition)}</td>
            <td class="time">
              <time dateTime={since} title={timeText(since)}>
                {ageText(since)}
              </time>
            </td>
            <td class="time">{timeText(claim.until)}</td>
            <td>
              <button
                type="button"
                class="small"
                aria-label={`End the wait of ${consumerText(first)}`}
                onClick={() => end(claim)}
              >
                End
              </button>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

/** Links to the consumers of a claim. A gang may have many. */
function Consumers({ consumers }: { readonly consumers: readonly Named[] }) {
  const links = consumers.map(({ uuid, name }) => <ConsumerLink key={uuid} uuid={uuid} name={name} />);
  return (
    <div class="gang">
      {links.slice(0, mostConsumers)}
      {links.length <= mostConsumers ? null : (
        <details>
          <summary>and {numberText(links.length - mostConsumers)} more</summary>
          {links.slice(mostConsumers)}
        </details>
      )}
    </div>
  );
}
