import { AsOf } from '../as_of.tsx';
import { ConsumerTable } from '../consumer/consumer_table.tsx';
import { readAmounts } from '../consumer/read_amounts.ts';
import { NoMore, Pages } from '../pages.tsx';
import { Reading } from '../reading.tsx';
import { changed, Link, navigate, urlOf, useRoute } from '../route.tsx';
import { placement } from '../session.ts';
import { numberText } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { longPauseMs, useLoaded } from '../use_loaded.ts';
import { useRenewal } from '../use_renewal.ts';
import { Past } from './past.tsx';

const pageSize = 50;

/** The consumers with allocations on a provider, or anywhere in its tree. */
export function Held({
  provider,
  isDivided,
  members,
}: {
  readonly provider: string;
  /** Whether the provider is a root with providers below it: then the consumers of the whole tree are shown first. */
  readonly isDivided: boolean;
  /** The UUIDs of its tree and of what shares with it. */
  readonly members: ReadonlySet<string> | undefined;
}) {
  const { query } = useRoute();
  const isOfTree = query.get('in') === 'tree' || (isDivided && query.get('in') === null);
  const after = query.get('after') ?? undefined;
  const urlWith = (values: Readonly<Record<string, string>>) => urlOf('providers', provider, changed(query, values));
  const loaded = useLoaded(`${provider} ${isOfTree} ${after ?? ''}`, async (signal) => {
    const where = isOfTree ? { in_tree: provider } : { resource_provider: provider };
    const page = await placement.consumers.page({ ...where, limit: pageSize + 1, marker: after }, { signal });
    const consumers = page.slice(0, pageSize);
    const hasMore = page.length > pageSize;
    if (isOfTree) {
      const amounts = await readAmounts(consumers, where, after, signal);
      return { consumers, hasMore, amounts, count: undefined };
    }
    const { allocations } = await placement.providers.allocations(provider, { signal });
    const amounts = new Map(Object.entries(allocations).map(([uuid, { resources }]) => [uuid, resources]));
    return { consumers, hasMore, amounts, count: amounts.size };
  });
  const { value: shown, error, isLoading, again, at } = loaded;
  useChanges(members, again);
  // Changes do not include a new name, owner or term.
  useRenewal(loaded, longPauseMs);
  const choose = (tree: boolean) =>
    navigate(urlWith({ in: tree === isDivided ? '' : tree ? 'tree' : 'provider', after: '' }), 'replace');
  return (
    <section>
      <div class="heading-row">
        <h2>Consumers{shown?.count === undefined ? '' : ` (${numberText(shown.count)})`}</h2>
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
      <AsOf at={at} follows />
      {shown === undefined ? (
        <Reading isLoading={isLoading} />
      ) : shown.consumers.length === 0 ? (
        <p class="faint">
          {after === undefined ? (
            'Nothing is allocated here.'
          ) : (
            <NoMore of="consumers" first={urlWith({ after: '' })} />
          )}
        </p>
      ) : (
        <>
          <p>
            <Link to={urlOf('holdings', undefined, { provider, in: isOfTree ? 'tree' : undefined })}>
              What each of them holds and where, since when and until when
            </Link>
          </p>
          <ConsumerTable
            consumers={shown.consumers}
            amounts={shown.amounts}
            isPart={shown.hasMore || after !== undefined}
          />
          <Pages
            of="consumers"
            first={after === undefined ? undefined : urlWith({ after: '' })}
            next={shown.hasMore ? urlWith({ after: shown.consumers.at(-1)?.uuid ?? '' }) : undefined}
          />
        </>
      )}
      <Past key={`${provider} ${isOfTree}`} provider={provider} isOfTree={isOfTree} />
    </section>
  );
}
