import { useMemo } from 'preact/hooks';
import { drainOf, reservedBeforeDrain } from '../../src/cli/drain_marks.ts';
import { ApiError, isNotFound } from '../../src/client/errors.ts';
import type { WholeProvider } from '../../src/client/provider_summaries.ts';
import { sharingTrait } from '../../src/placement/inventory.ts';
import { ResourcesText } from '../amount.tsx';
import { Copy } from '../copy.tsx';
import { DrainTag, drainText } from '../fleet/drain.tsx';
import { amountsOf, drainOfTree, sumOf } from '../fleet/trees.ts';
import { AmountBars } from '../meter.tsx';
import { Name } from '../name.tsx';
import { ProviderLink } from '../provider_link.tsx';
import { Link, urlOf } from '../route.tsx';
import { SameAs } from '../same_as.tsx';
import { placement } from '../session.ts';
import { counted, numberText, visible } from '../text.ts';
import { useTitle } from '../title.ts';
import { NoUuid, Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { uuidOf } from '../uuid.ts';
import { FindProvider } from './find_provider.tsx';
import { Held } from './held.tsx';
import { InventoryTable } from './inventory_table.tsx';
import { TreeList } from './tree_list.tsx';

/** The largest page of the service: a tree is read at once. */
const mostProviders = 10_000;

/** One provider: its tree, its inventories, and the consumers with allocations on it. */
export function ProviderView({ id }: { readonly id: string | undefined }) {
  if (id === undefined) return <FindProvider />;
  const uuid = uuidOf(id);
  return uuid === undefined ? <NoUuid title="Provider" text={id} /> : <OneProvider uuid={uuid} />;
}

function OneProvider({ uuid }: { readonly uuid: string }) {
  const { value, error, again } = useLoaded(uuid, async (signal) => {
    const tree = await placement.providerSummaries
      .page({ in_tree: uuid, limit: mostProviders }, { signal })
      .catch((error: unknown) => noneIfGone(uuid, error, signal));
    const aggregates = [...new Set(tree.flatMap(({ aggregates }) => aggregates))];
    const sharing =
      aggregates.length === 0
        ? []
        : await placement.providerSummaries.page(
            { required: [sharingTrait], member_of: [`in:${aggregates.join(',')}`] },
            { signal },
          );
    return { tree, sharing: sharing.filter((each) => !tree.some((member) => member.uuid === each.uuid)) };
  });
  const members = useMemo(() => value && new Set([...value.tree, ...value.sharing].map((each) => each.uuid)), [value]);
  useChanges(members, again);
  const provider = value?.tree.find((each) => each.uuid === uuid);
  useTitle(uuid, provider?.name);
  if (provider === undefined || value === undefined) {
    return (
      <>
        <h1>Provider</h1>
        {error !== undefined ? (
          <Trouble error={error} what="The provider" />
        ) : value === undefined ? (
          <p class="faint">Reading…</p>
        ) : (
          <p role="status">
            There is no provider with the UUID <code>{visible(uuid)}</code> (any more).
          </p>
        )}
      </>
    );
  }
  const root = value.tree.find((each) => each.uuid === provider.root_provider_uuid);
  const parent = value.tree.find((each) => each.uuid === provider.parent_provider_uuid);
  return (
    <div class="provider">
      <header class="view-header">
        <p class="faint">
          {root !== undefined && root !== provider ? (
            <>
              <ProviderLink uuid={root.uuid} name={root.name} /> ›{' '}
            </>
          ) : null}
          {parent !== undefined && parent !== root ? (
            <>
              {root?.uuid === parent.parent_provider_uuid ? '' : '… › '}
              <ProviderLink uuid={parent.uuid} name={parent.name} /> ›{' '}
            </>
          ) : null}
          {provider === root ? 'root provider' : 'provider'}
        </p>
        <h1>
          <Name text={provider.name} />
        </h1>
        <Drained tree={value.tree} provider={provider} />
        <p class="faint">
          <code>{provider.uuid}</code> <Copy text={provider.uuid} what="the UUID" /> · generation {provider.generation}{' '}
          ·{' '}
          <Link to={urlOf('fit', undefined, { resources: usualQuery(value.tree), tree: provider.uuid })}>
            why does something not fit here?
          </Link>
        </p>
      </header>
      {/* By UUIDs, because a name may look like the UUID of another provider, or like an option. */}
      <SameAs
        path={`/provider_summaries?in_tree=${provider.uuid}`}
        commands={[
          { what: 'The same by command', command: `placement provider tree ${provider.uuid} --usage` },
          {
            what: 'Its consumers',
            command: `placement consumer list --in-tree ${provider.uuid}`,
          },
          {
            what: 'Before maintenance: no new claims on its whole tree',
            command: `placement drain ${provider.root_provider_uuid}`,
          },
          { what: 'After maintenance', command: `placement undrain ${provider.root_provider_uuid}` },
          {
            what: 'After the host has failed: delete the allocations of all consumers on it',
            command: `placement release --in-tree ${provider.root_provider_uuid}`,
          },
        ]}
      />
      {error === undefined ? null : <Trouble error={error} what="The newest state" />}
      <div class="provider-body">
        <section class="tree-part" aria-label="Tree">
          {value.tree.length === 1 || drainOfTree(value.tree) === 'drained' ? null : (
            <>
              <h2>Its whole tree together</h2>
              <AmountBars amounts={sumOf(value.tree.map(amountsOf))} />
            </>
          )}
          <h2>Tree ({counted(value.tree.length, 'provider')})</h2>
          <TreeList providers={value.tree} current={provider.uuid} />
          {value.sharing.length === 0 ? null : (
            <>
              <h2>Shared with it</h2>
              <TreeList providers={value.sharing.map(asRoot)} current={provider.uuid} />
            </>
          )}
        </section>
        <div>
          <section>
            <h2>Inventories</h2>
            <InventoryTable provider={provider} />
          </section>
          <section class="two">
            <div>
              <h2>Traits ({provider.traits.length})</h2>
              {provider.traits.length === 0 ? (
                <p class="faint">none</p>
              ) : (
                <ul class="chips">
                  {provider.traits.toSorted().map((trait) => (
                    <li key={trait}>
                      <Link to={urlOf('fleet', undefined, { group: `trait:${trait}` })}>{trait}</Link>
                    </li>
                  ))}
                </ul>
              )}
            </div>
            <div>
              <h2>Aggregates ({provider.aggregates.length})</h2>
              {provider.aggregates.length === 0 ? (
                <p class="faint">none</p>
              ) : (
                <ul class="chips">
                  {provider.aggregates.map((aggregate) => (
                    <li key={aggregate}>
                      <Link to={urlOf('aggregates', aggregate)}>
                        <code>{aggregate}</code>
                      </Link>{' '}
                      <Copy text={aggregate} what={`the UUID ${aggregate}`} />
                    </li>
                  ))}
                </ul>
              )}
            </div>
          </section>
          <Held
            key={uuid}
            provider={provider.uuid}
            isDivided={provider === root && value.tree.length > 1}
            members={members}
          />
        </div>
      </div>
    </div>
  );
}

/** That the tree of a provider is drained, and what was reserved of the provider before. */
function Drained({ tree, provider }: { readonly tree: readonly WholeProvider[]; readonly provider: WholeProvider }) {
  const drain = drainOfTree(tree);
  if (drain === undefined) return null;
  const before = [...(reservedBeforeDrain(provider) ?? [])].filter(([, reserved]) => reserved > 0);
  const isOpen = tree.some((each) => drainOf(each) === 'open');
  const drained = tree.filter((each) => drainOf(each) === 'drained').length;
  return (
    <div class="drained" role="status">
      <p>
        <DrainTag drain={drain} />{' '}
        {drain === 'drained'
          ? 'No new claim fits on its tree. What is held stays until it ends.'
          : `${numberText(drained)} of the ${counted(tree.length, 'provider')} of its tree ${drained === 1 ? 'is' : 'are'} drained.`}
      </p>
      {drain === 'drained' ? <p>{drainText({ drain, amounts: sumOf(tree.map(amountsOf)) })}</p> : null}
      {isOpen ? (
        <p>
          Another program has written inventories since the drain, so it accepts claims again: drain it once more, or
          lift the drain.
        </p>
      ) : null}
      {before.length === 0 ? null : (
        <p>
          Reserved of this provider before the drain: <ResourcesText resources={Object.fromEntries(before)} />.
        </p>
      )}
    </div>
  );
}

/** The tree of a provider that does not exist is empty. Any other error is thrown again. */
async function noneIfGone(uuid: string, error: unknown, signal: AbortSignal): Promise<readonly WholeProvider[]> {
  if (!(error instanceof ApiError) || error.status !== 400) throw error;
  return placement.providers.show(uuid, { signal }).then(
    () => Promise.reject(error),
    (other: unknown) => (isNotFound(other) ? [] : Promise.reject(other)),
  );
}

/** A usual amount of some classes; of others it is one. */
const usualAmounts: Readonly<Record<string, number>> = { VCPU: 2, MEMORY_MB: 4096, DISK_GB: 20 };

/** A query to begin with: a usual amount of each class that the tree has. */
const usualQuery = (tree: readonly WholeProvider[]): string =>
  [...sumOf(tree.map(amountsOf)).keys()].map((name) => `${name}:${usualAmounts[name] ?? 1}`).join(',');

/** Sharing providers are listed separately, wherever they are in their own trees. */
const asRoot = (provider: WholeProvider): WholeProvider => ({ ...provider, parent_provider_uuid: null });
