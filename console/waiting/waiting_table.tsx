import type { TextTable } from '../../src/cli/table.ts';
import type { WaitingClaim } from '../../src/client/waiting.ts';
import { Age } from '../age.tsx';
import { ConsumerLink, consumerText, type Named } from '../consumer_link.tsx';
import { urlOfLimits } from '../limits/url_of_limits.ts';
import { ProviderLink } from '../provider_link.tsx';
import { Link, urlOf } from '../route.tsx';
import { Table } from '../table.tsx';
import { counted, numberText, timeText, visible } from '../text.ts';

/** How many consumers of a claim are shown at first; a click shows the rest. */
const mostConsumers = 3;

const consumersOf = ({ consumers, names }: WaitingClaim): readonly Named[] =>
  consumers.map((uuid, index) => ({ uuid, name: names?.[index] }));

/** Claims that wait, each with a button that ends its wait, if the view has one. */
export function WaitingTable({
  claims,
  end,
}: {
  readonly claims: readonly WaitingClaim[];
  readonly end?: ((claim: WaitingClaim) => void) | undefined;
}) {
  return (
    <Table
      name={`Table of ${counted(claims.length, 'waiting claim')}`}
      kind="cards"
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
        end === undefined ? undefined : { text: <span class="hidden">end of the wait</span> },
      ]}
    >
      {claims.map((claim) => {
        const { project_id: project, user_id: user, line, since } = claim;
        const consumers = consumersOf(claim);
        const [first = { uuid: '', name: undefined }] = consumers;
        return (
          <tr key={claim.consumers.join()}>
            <th scope="row">
              <Consumers consumers={consumers} project={project} />
            </th>
            <td data-label="project">
              <Link to={urlOfLimits(project)}>
                <bdi>{visible(project)}</bdi>
              </Link>
            </td>
            <td data-label="user">
              <bdi>{visible(user)}</bdi>
            </td>
            <td data-label="line">
              {line === null ? (
                '—'
              ) : (
                <Link to={urlOf('waiting', undefined, { project, line })}>
                  <bdi>{visible(line)}</bdi>
                </Link>
              )}
            </td>
            <td data-label="place" class="number">
              {numberText(claim.place)}
            </td>
            <td data-label="waits for">{claim.waits_for}</td>
            <td data-label="condition" class="condition">
              <Condition claim={claim} />
            </td>
            <td data-label="since" class="time">
              <Age at={since} />
            </td>
            <td data-label="until" class="time">
              {timeText(claim.until)}
            </td>
            {end === undefined ? null : (
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
            )}
          </tr>
        );
      })}
    </Table>
  );
}

/** Links to the consumers of a claim. A gang may have many. */
function Consumers({ consumers, project }: { readonly consumers: readonly Named[]; readonly project: string }) {
  const links = consumers.map(({ uuid, name }) => (
    <ConsumerLink key={uuid} uuid={uuid} name={name} project={project} />
  ));
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

/** The unmet condition. A tree is shown by its name, and a claim in a line by the claims ahead of it. */
function Condition({ claim }: { readonly claim: WaitingClaim }) {
  const text = conditionOf(claim);
  const [before, parameter, uuid, after] = treePartsOf(text);
  if (uuid === undefined) return <>{text === '' ? '—' : visible(text)}</>;
  return (
    <>
      {visible(before ?? '')}
      {parameter}
      <ProviderLink uuid={uuid} />
      {visible(after ?? '')}
    </>
  );
}

/** The place of a claim in its line, if it waits for its turn, and its condition, without its only consumer, which has another cell. */
function conditionOf(claim: WaitingClaim): string {
  const turn =
    claim.waits_for === 'line' && claim.place > 1
      ? [`its turn: ${counted(claim.place - 1, 'claim')} before it in its line`]
      : [];
  const [first, ...others] = consumersOf(claim);
  const start = first === undefined || others.length > 0 ? '' : `No allocation candidates for consumer ${first.uuid}`;
  const named = `${start}${first?.name ? ` (${first.name})` : ''}: `;
  const { condition } = claim;
  const rest = start !== '' && condition.startsWith(named) ? condition.slice(named.length) : condition;
  return [...turn, ...(rest === '' ? [] : [rest])].join('; when it was tried: ');
}

/** A text around the tree that it names: `no tree meets `, `in_tree=`, the UUID of a provider, and the rest. */
const treePartsOf = (condition: string): readonly (string | undefined)[] =>
  /^(.*?)(in_tree\w*=)([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(.*)$/s.exec(condition)?.slice(1) ?? [];

/** Claims as rows of text, a row for each consumer. */
export const waitingText = (claims: readonly WaitingClaim[]): TextTable => ({
  head: ['consumer', 'name', 'project', 'user', 'line', 'place', 'waits for', 'condition', 'since', 'until'],
  rows: claims.flatMap((claim) =>
    consumersOf(claim).map(({ uuid, name }) => [
      uuid,
      name ?? '',
      claim.project_id,
      claim.user_id,
      claim.line ?? '',
      claim.place,
      claim.waits_for,
      conditionOf(claim),
      claim.since,
      claim.until,
    ]),
  ),
});
