import { useState } from 'preact/hooks';
import type { Consumer } from '../../src/client/consumers.ts';
import type { Resources } from '../../src/client/filters.ts';
import { ResourcesText } from '../amount.tsx';
import { ConsumerLink } from '../consumer_link.tsx';
import { Pages } from '../pages.tsx';
import { Link, urlOf } from '../route.tsx';
import { placement } from '../session.ts';
import { Table } from '../table.tsx';
import { counted, numberText, timeText, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';

const pageSize = 50;

/** The consumers with allocations on a provider, or anywhere in its tree. */
export function Held({ provider, round }: { readonly provider: string; readonly round: number }) {
  const [isOfTree, setOfTree] = useState(false);
  const [markers, setMarkers] = useState<readonly string[]>([]);
  const marker = markers.at(-1);
  const { value, error, isLoading } = useLoaded(`${provider} ${isOfTree} ${marker ?? ''} ${round}`, async (signal) => {
    const where = isOfTree ? { in_tree: provider } : { resource_provider: provider };
    const [page, amounts] = await Promise.all([
      placement.consumers.page({ ...where, limit: pageSize + 1, marker }, { signal }),
      isOfTree
        ? undefined
        : placement.providers.allocations(provider, { signal }).then(({ allocations }) => allocations),
    ]);
    return { consumers: page.slice(0, pageSize), hasMore: page.length > pageSize, amounts };
  });
  const [last, setLast] = useState(value);
  if (value !== undefined && value !== last) setLast(value);
  const shown = value ?? last;
  const choose = (tree: boolean) => {
    setOfTree(tree);
    setMarkers([]);
  };
  return (
    <section>
      <div class="heading-row">
        <h2>
          Consumers
          {shown?.amounts === undefined || isOfTree ? '' : ` (${numberText(Object.keys(shown.amounts).length)})`}
        </h2>
        <fieldset class="switch">
          <legend class="hidden">Consumers of</legend>
          <button type="button" aria-pressed={!isOfTree} onClick={() => choose(false)}>
            This provider
          </button>
          <button type="button" aria-pressed={isOfTree} onClick={() => choose(true)}>
            Its whole tree
          </button>
        </fieldset>
      </div>
      {error === undefined ? null : <Trouble error={error} what="The list of consumers" />}
      {shown === undefined ? (
        isLoading ? (
          <p class="faint">Reading…</p>
        ) : null
      ) : shown.consumers.length === 0 ? (
        <p class="faint">Nothing is allocated here.</p>
      ) : (
        <>
          <p>
            <Link to={urlOf('holdings', undefined, { provider, in: isOfTree ? 'tree' : undefined })}>
              What each of them holds and where, since when and until when
            </Link>
          </p>
          <ConsumerTable consumers={shown.consumers} amounts={shown.amounts} />
          <Pages
            of="consumers"
            previous={markers.length === 0 ? undefined : () => setMarkers(markers.slice(0, -1))}
            next={shown.hasMore ? () => setMarkers([...markers, shown.consumers.at(-1)?.uuid ?? '']) : undefined}
          />
        </>
      )}
    </section>
  );
}

/** Consumers as rows. `amounts`: what each of them has, where that is known. */
export function ConsumerTable({
  consumers,
  amounts,
}: {
  readonly consumers: readonly Consumer[];
  readonly amounts?: { readonly [consumer: string]: { readonly resources: Resources } } | undefined;
}) {
  const hasTerms = consumers.some(({ expires_at }) => expires_at);
  return (
    <Table
      name={`Table of ${counted(consumers.length, 'consumer')}`}
      headings={[
        'consumer',
        amounts === undefined ? undefined : 'has here',
        'type',
        'project',
        'user',
        'since',
        hasTerms ? 'until' : undefined,
      ]}
    >
      {consumers.map(({ uuid, name, consumer_type, project_id, user_id, created_at, expires_at }) => (
        <tr key={uuid}>
          <th scope="row">
            <ConsumerLink uuid={uuid} name={name} />
          </th>
          {amounts === undefined ? null : (
            <td class="resources">
              <ResourcesText resources={amounts[uuid]?.resources ?? {}} />
            </td>
          )}
          <td>{visible(consumer_type)}</td>
          <td>
            <bdi>{visible(project_id)}</bdi>
          </td>
          <td>
            <bdi>{visible(user_id)}</bdi>
          </td>
          <td class="time">{timeText(created_at)}</td>
          {hasTerms ? <td class="time">{timeText(expires_at)}</td> : null}
        </tr>
      ))}
    </Table>
  );
}
