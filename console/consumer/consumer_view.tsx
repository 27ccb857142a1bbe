import { ApiError, isNotFound, VersionError } from '../../src/client/errors.ts';
import type { WaitingClaim } from '../../src/client/waiting.ts';
import { ResourcesText } from '../amount.tsx';
import { Copy } from '../copy.tsx';
import { urlOfLimits } from '../limits/url_of_limits.ts';
import { Name } from '../name.tsx';
import { ProviderLink } from '../provider_link.tsx';
import { Reading } from '../reading.tsx';
import { Link, urlOf, useRoute } from '../route.tsx';
import { SameAs } from '../same_as.tsx';
import { placement } from '../session.ts';
import { Table } from '../table.tsx';
import { counted, timeText, visible } from '../text.ts';
import { useTitle } from '../title.ts';
import { NoUuid, Trouble } from '../trouble.tsx';
import { useAnyChange } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { useRenewal } from '../use_renewal.ts';
import { uuidOf } from '../uuid.ts';
import { WaitingTable } from '../waiting/waiting_table.tsx';
import { ConsumerList } from './consumer_list.tsx';

/** One consumer: its name, its allocations, its owner, since when it exists and when its term expires. */
export function ConsumerView({ id }: { readonly id: string | undefined }) {
  if (id === undefined) return <ConsumerList />;
  const uuid = uuidOf(id);
  return uuid === undefined ? <NoUuid title="Consumer" text={id} /> : <OneConsumer key={uuid} uuid={uuid} />;
}

/** How long changes are collected before it is read again, in milliseconds. */
const pauseMs = 1_000;

function OneConsumer({ uuid }: { readonly uuid: string }) {
  // Users who may not read all waiting claims may read those of their project.
  const project = useRoute().query.get('project') || undefined;
  const owner = useLoaded(`${uuid} ${project ?? ''}`, async (signal) => {
    try {
      return { consumer: await placement.consumers.show(uuid, { signal }), claim: undefined };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      // A consumer whose claim waits does not exist yet.
      const { claim, refusal } = await waitingClaimOf(uuid, project, signal);
      if (claim !== undefined) return { consumer: undefined, claim };
      error.cause = refusal;
      throw error;
    }
  });
  const held = useLoaded(uuid, (signal) => placement.allocations.show(uuid, { signal }));
  // The consumer may be created, and may get allocations on any provider.
  useAnyChange([owner, held], pauseMs);
  // Changes include neither its term, name and owner, nor that its claim waits, for which all waiting claims are read.
  useRenewal(owner);
  const consumer = owner.value?.consumer;
  const claim = owner.error === undefined ? owner.value?.claim : undefined;
  const name = consumer?.name ?? claim?.names?.[claim.consumers.indexOf(uuid)] ?? undefined;
  useTitle(uuid, name);
  const allocations = Object.entries(held.value?.allocations ?? {});
  return (
    <>
      <header class="view-header">
        <p class="faint">{consumer === undefined ? 'consumer' : visible(consumer.consumer_type)}</p>
        <h1>{name === undefined ? <code>{visible(uuid)}</code> : <Name text={name} />}</h1>
        <p class="faint">
          {name === undefined ? null : <code>{visible(uuid)}</code>} <Copy text={uuid} what="the UUID" />
        </p>
      </header>
      <SameAs
        path={`/allocations/${uuid}`}
        commands={[
          { what: 'The same by command', command: `placement allocation show ${uuid}` },
          { what: 'Delete all that it has', command: `placement allocation delete ${uuid}` },
        ]}
      />
      {owner.error === undefined ? null : <Trouble error={owner.error} what="The owner of the consumer" />}
      {isNotFound(owner.error) && owner.error.cause !== undefined ? (
        <Trouble
          error={owner.error.cause}
          what="Whether its claim waits"
          mayAskByProject={project === undefined && 'elsewhere'}
        />
      ) : null}
      {consumer === undefined ? null : (
        <dl class="facts">
          <div>
            <dt>project</dt>
            <dd>
              <Link to={urlOf('consumers', undefined, { project: consumer.project_id })}>
                <bdi>{visible(consumer.project_id)}</bdi>
              </Link>{' '}
              (<Link to={urlOfLimits(consumer.project_id)}>its limits</Link>)
            </dd>
          </div>
          <div>
            <dt>user</dt>
            <dd>
              <bdi>{visible(consumer.user_id)}</bdi>
            </dd>
          </div>
          <div>
            <dt>since</dt>
            <dd>{timeText(consumer.created_at)}</dd>
          </div>
          <div>
            <dt>changed</dt>
            <dd>{timeText(consumer.updated_at)}</dd>
          </div>
          <div>
            <dt>until</dt>
            <dd>{consumer.expires_at ? timeText(consumer.expires_at) : 'it is deleted'}</dd>
          </div>
          <div>
            <dt>generation</dt>
            <dd>{consumer.consumer_generation ?? 'none'}</dd>
          </div>
        </dl>
      )}
      {claim === undefined ? null : (
        <section>
          <h2>It waits</h2>
          <p role="status">
            It has nothing yet: its claim{' '}
            {claim.consumers.length === 1
              ? ''
              : `of ${counted(claim.consumers.length, 'consumer')}, which are placed together,`}{' '}
            waits.{' '}
            <Link to={urlOf('waiting', undefined, { project: claim.project_id })}>Waiting claims of its project</Link>
          </p>
          <WaitingTable claims={[claim]} />
        </section>
      )}
      {claim === undefined ? (
        <section>
          <h2>What it has</h2>
          {held.error === undefined ? null : <Trouble error={held.error} what="What the consumer has" />}
          {held.value === undefined ? (
            <Reading isLoading={held.isLoading} />
          ) : allocations.length === 0 ? (
            <p class="faint" role="status">
              It has nothing (any more).
            </p>
          ) : (
            <Table
              name={`Allocations of ${counted(allocations.length, 'provider')}`}
              headings={['provider', 'resources']}
            >
              {allocations.map(([provider, { resources }]) => (
                <tr key={provider}>
                  <th scope="row">
                    <ProviderLink uuid={provider} name={held.value?.resource_providers?.[provider]?.name} />
                  </th>
                  <td class="resources">
                    <ResourcesText resources={resources} />
                  </td>
                </tr>
              ))}
            </Table>
          )}
        </section>
      ) : null}
    </>
  );
}

/**
 * The claim of a consumer, if it waits, or why it is not known whether it does. Neither where the service has no waiting claims.
 *
 * @param project of the claim; undefined for any
 */
async function waitingClaimOf(
  uuid: string,
  project: string | undefined,
  signal: AbortSignal,
): Promise<{ readonly claim?: WaitingClaim; readonly refusal?: ApiError }> {
  try {
    for await (const claim of placement.waiting.list({ project_id: project }, { signal })) {
      if (claim.consumers.includes(uuid)) return { claim };
    }
  } catch (error) {
    if (error instanceof ApiError) return { refusal: error };
    if (!(error instanceof VersionError)) throw error;
  }
  return {};
}
