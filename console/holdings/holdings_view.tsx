import { AsOf } from '../as_of.tsx';
import { urlOfLimits } from '../limits/url_of_limits.ts';
import { NoMore, Pages } from '../pages.tsx';
import { ProviderLink } from '../provider_link.tsx';
import { Reading } from '../reading.tsx';
import { Link, navigate, urlOf, useRoute } from '../route.tsx';
import { counted, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { longPauseMs, useLoaded } from '../use_loaded.ts';
import { useRenewal } from '../use_renewal.ts';
import { FilterForm } from './filter_form.tsx';
import { type HolderFilter, holderFilterOf, isUnfiltered, urlOfHoldings } from './holder_filter.ts';
import { HoldingTable } from './holding_table.tsx';
import { Months } from './months.tsx';
import { type HoldingsPage, readHoldings } from './read_holdings.ts';
import { type SumKey, sumKeys } from './sum_holdings.ts';
import { SumTable, useSums } from './sum_table.tsx';

/** Which consumers hold what, where, since when and until when: by project, user, class and provider. */
export function HoldingsView() {
  const { query } = useRoute();
  const filter = holderFilterOf(query);
  const sum = sumKeys.find((key) => key === filter.sum);
  // The page may be undefined: it is in an object, so that the value shows whether it was read.
  const loaded = useLoaded(sum === undefined ? urlOfHoldings({ ...filter, sort: '' }) : undefined, async (signal) => ({
    page: await readHoldings(filter, signal),
  }));
  const { value, error, isLoading, again, at } = loaded;
  useChanges('any', again);
  // Changes do not include a new name, owner or term.
  useRenewal(loaded, longPauseMs);
  const sums = useSums(filter, sum);
  return (
    <>
      <h1>Holders</h1>
      <FilterForm filter={filter} again={sum === undefined ? again : sums.again} />
      {filter.project === '' ? null : <ProjectLinks project={filter.project} />}
      <SumSwitch filter={filter} sum={sum} />
      {error === undefined ? null : (
        <Trouble error={error} what="The list of holders" mayAskByProject={filter.project === ''} />
      )}
      {sum !== undefined ? (
        <SumTable key={sum} filter={filter} by={sum} loaded={sums} />
      ) : value === undefined ? (
        <Reading isLoading={isLoading} />
      ) : value.page === undefined ? (
        <p role="status">No provider has this name.</p>
      ) : (
        <>
          <AsOf at={at} follows />
          <Holders filter={filter} page={value.page} />
        </>
      )}
      {filter.project === '' ? null : <Months project={filter.project} />}
    </>
  );
}

/** Buttons that choose between the holders themselves and their sums. */
function SumSwitch({ filter, sum }: { readonly filter: HolderFilter; readonly sum: SumKey | undefined }) {
  const show = (key: string) => navigate(urlOfHoldings({ ...filter, sum: key, sort: '', after: '' }));
  return (
    <fieldset class="switch">
      <legend class="hidden">Shown as</legend>
      {['', ...sumKeys].map((key) => (
        <button key={key} type="button" aria-pressed={(sum ?? '') === key} onClick={() => show(key)}>
          {key === '' ? 'Each' : `By ${key}`}
        </button>
      ))}
    </fieldset>
  );
}

/** Where to read more about a project. */
function ProjectLinks({ project }: { readonly project: string }) {
  return (
    <p>
      Project <bdi>{visible(project)}</bdi>: <Link to={urlOfLimits(project)}>its limits</Link>,{' '}
      <Link to={urlOf('consumers', undefined, { project })}>its consumers</Link>,{' '}
      <Link to={urlOf('waiting', undefined, { project })}>its waiting claims</Link>
    </p>
  );
}

function Holders({
  filter,
  page: { holdings, next, provider },
}: {
  readonly filter: HolderFilter;
  readonly page: HoldingsPage;
}) {
  const isFirst = filter.after === '';
  if (holdings.length === 0) {
    return (
      <p role="status">
        {!isFirst ? (
          <NoMore of="holders" first={urlOfHoldings({ ...filter, after: '' })} />
        ) : isUnfiltered(filter) ? (
          'No consumer holds anything.'
        ) : (
          'No consumer holds this.'
        )}
      </p>
    );
  }
  const consumers = new Set(holdings.map(({ consumer }) => consumer));
  return (
    <section>
      <p class="faint">
        {counted(consumers.size, 'consumer')}
        {isFirst && next === undefined ? '' : ' on this page'}
        {provider === undefined ? null : (
          <>
            , of <ProviderLink uuid={provider} />
            {filter.in === 'tree' ? ' and its whole tree' : ''}
          </>
        )}
      </p>
      <HoldingTable holdings={holdings} filter={filter} isPart={!isFirst || next !== undefined} />
      <Pages
        of="holders"
        first={isFirst ? undefined : urlOfHoldings({ ...filter, after: '' })}
        next={next === undefined ? undefined : urlOfHoldings({ ...filter, after: next })}
      />
    </section>
  );
}
