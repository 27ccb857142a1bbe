import { AsOf } from '../as_of.tsx';
import { urlOfLimits } from '../limits/url_of_limits.ts';
import { NoMore, Pages } from '../pages.tsx';
import { ProviderLink } from '../provider_link.tsx';
import { Reading } from '../reading.tsx';
import { Link, navigate, urlOf, useRoute } from '../route.tsx';
import { counted, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { longPauseMs, useRenewal } from '../use_renewal.ts';
import { FilterForm } from './filter_form.tsx';
import { type HolderFilter, holderFilterOf, isEveryone, urlOfHoldings } from './holder_filter.ts';
import { HoldingTable } from './holding_table.tsx';
import { Months } from './months.tsx';
import { type HoldingsPage, readHoldings } from './read_holdings.ts';
import { sumKeys } from './sum_holdings.ts';
import { SumTable, useSums } from './sum_table.tsx';

/** Who holds what, where, since when and until when: by project, user, class and provider. */
export function HoldingsView() {
  const { query } = useRoute();
  const asked = holderFilterOf(query);
  const sum = sumKeys.find((key) => key === asked.sum);
  // The page may be undefined: it is in an object, so that the value tells whether it was read.
  const loaded = useLoaded(sum === undefined ? urlOfHoldings({ ...asked, sort: '' }) : undefined, async (signal) => ({
    page: await readHoldings(asked, signal),
  }));
  const { value, error, isLoading, again, at } = loaded;
  useChanges('any', again);
  // Changes do not tell of a new name, owner or term.
  useRenewal(loaded, longPauseMs);
  const sums = useSums(asked, sum);
  return (
    <>
      <h1>Holders</h1>
      <FilterForm asked={asked} again={sum === undefined ? again : sums.again} />
      {asked.project === '' ? null : <ProjectLinks project={asked.project} />}
      <SumSwitch asked={asked} />
      {error === undefined ? null : (
        <Trouble error={error} what="The list of holders" mayAskByProject={asked.project === ''} />
      )}
      {sum !== undefined ? (
        <SumTable key={sum} asked={asked} by={sum} loaded={sums} />
      ) : value === undefined ? (
        <Reading isLoading={isLoading} />
      ) : value.page === undefined ? (
        <p role="status">No provider has this name.</p>
      ) : (
        <>
          <AsOf at={at} follows />
          <Holders asked={asked} page={value.page} />
        </>
      )}
      {asked.project === '' ? null : <Months project={asked.project} />}
    </>
  );
}

/** Buttons that choose between the holders themselves and their sums. */
function SumSwitch({ asked }: { readonly asked: HolderFilter }) {
  const show = (sum: string) => navigate(urlOfHoldings({ ...asked, sum, sort: '', after: '' }));
  return (
    <fieldset class="switch">
      <legend class="hidden">Shown as</legend>
      {['', ...sumKeys].map((key) => (
        <button key={key} type="button" aria-pressed={asked.sum === key} onClick={() => show(key)}>
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
  asked,
  page: { holdings, next, provider },
}: {
  readonly asked: HolderFilter;
  readonly page: HoldingsPage;
}) {
  const isFirst = asked.after === '';
  if (holdings.length === 0) {
    return (
      <p role="status">
        {!isFirst ? (
          <NoMore of="holders" first={urlOfHoldings({ ...asked, after: '' })} />
        ) : isEveryone(asked) ? (
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
            {asked.in === 'tree' ? ' and its whole tree' : ''}
          </>
        )}
      </p>
      <HoldingTable holdings={holdings} asked={asked} isPart={!isFirst || next !== undefined} />
      <Pages
        of="holders"
        first={isFirst ? undefined : urlOfHoldings({ ...asked, after: '' })}
        next={next === undefined ? undefined : urlOfHoldings({ ...asked, after: next })}
      />
    </section>
  );
}
