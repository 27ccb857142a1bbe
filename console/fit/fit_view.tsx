import { useEffect, useMemo, useState } from 'preact/hooks';
import { ApiError } from '../../src/client/errors.ts';
import { ResourcesText } from '../amount.tsx';
import { AsOf } from '../as_of.tsx';
import { classOrder } from '../fleet/trees.ts';
import { useNamedAggregates } from '../fleet/use_trees.ts';
import { mirror, openMirror } from '../mirror.ts';
import { ProviderLink } from '../provider_link.tsx';
import { Link, navigate, urlOf, useRoute } from '../route.tsx';
import { SameAs } from '../same_as.tsx';
import { placement } from '../session.ts';
import { useStore } from '../store.ts';
import { counted, numberText, visible } from '../text.ts';
import { LeftOut, Trouble } from '../trouble.tsx';
import { useAnyChange } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { Funnel, Nearest } from './explained.tsx';
import {
  argumentsOf,
  candidateQueryOf,
  classesOf,
  fieldsOf,
  leftOutOf,
  type QueryFields,
  searchOf,
  suggestionsFor,
} from './query_fields.ts';
import { type Known, QueryForm } from './query_form.tsx';
import { worthwhile } from './reason.ts';
import { WhyNot } from './why_not.tsx';

/** How long changes are collected before the answers are read again, in milliseconds. */
const pauseMs = 2_000;
/** How many candidates are shown. */
const mostCandidates = 20;
/** How many nearly fitting trees are shown, and how many are read: some have no condition to show. */
const mostNearest = 10;
const mostRead = 100;

/** A query for candidates: where it fits, how often, and if it does not fit, why. */
export function FitView() {
  const { query } = useRoute();
  const fields = fieldsOf(query);
  const key = searchOf({ ...fields, tree: '' }).toString();
  const classes = useLoaded('classes', (signal) => placement.resourceClasses.list({ signal }));
  const traits = useLoaded('traits', (signal) => placement.traits.list({ associated: true }, { signal }));
  useEffect(openMirror, []);
  const inUse = useClassesInUse();
  const known: Known = {
    classes: inUse ?? classes.value ?? [],
    traits: traits.value ?? [],
    aggregates: useNamedAggregates(),
    providers: () => mirror.get().providers.values(),
  };
  const [round, setRound] = useState(0);
  const ask = (asked: QueryFields) => {
    setRound(round + 1);
    navigate(urlOf('fit', undefined, searchOf(asked)));
  };
  return (
    <div class="fit">
      <h1 class="hidden">Where does it fit?</h1>
      <QueryForm key={key} initial={fields} known={known} onAsk={ask} />
      <div class="answers">
        <LeftOut names={leftOutOf(query)} />
        <Answers
          fields={fields}
          asked={key === '' ? undefined : `${key} ${round}`}
          classes={classes.value ?? []}
          unused={classesOf(fields).filter((name) => inUse?.includes(name) === false)}
        />
      </div>
    </div>
  );
}

function Answers({
  fields,
  asked,
  classes,
  unused,
}: {
  readonly fields: QueryFields;
  readonly asked: string | undefined;
  readonly classes: readonly string[];
  /** Classes of the query that no provider has. */
  readonly unused: readonly string[];
}) {
  const query = candidateQueryOf(fields);
  const key = query === undefined ? undefined : asked;
  const found = useLoaded(key, (signal) => placement.candidates({ ...query, limit: mostCandidates }, { signal }));
  // The order of the answers does not change why it fits, or how often.
  const { order: _order, ...unordered } = query ?? {};
  const explained = useLoaded(key, (signal) =>
    placement.candidateQuestions.explain({ ...unordered, nearest: mostRead }, { signal }),
  );
  const count = useLoaded(key, (signal) => placement.candidateQuestions.count({ ...unordered, top: 10 }, { signal }));
  useAnyChange([found, explained, count], pauseMs);
  if (key === undefined) {
    return (
      <div class="empty">
        {fields.tree === '' ? null : (
          <p>
            Say what does not fit on <ProviderLink uuid={fields.tree} />, and the answer says why.
          </p>
        )}
        <p>Say what is needed, such as 4 VCPU and 8192 MEMORY_MB, and which traits a host must have.</p>
        <p class="faint">
          The answer says where it fits and how often; and if it fits nowhere, which condition leaves no host, and which
          trees come nearest. The address of this page has the query, as GET /allocation_candidates takes it.
        </p>
      </div>
    );
  }
  if (found.error instanceof ApiError && found.error.status === 400)
    return (
      <>
        <Trouble error={found.error} what="The answer" />
        <Suggestions fields={fields} classes={classes} />
      </>
    );
  const requests = found.value?.allocation_requests;
  const nearest = worthwhile(explained.value?.nearest ?? [], mirror.get().providers).slice(0, mostNearest);
  const whyNot =
    explained.error === undefined ? <WhyNot key={fields.tree} query={unordered} asked={key} fields={fields} /> : null;
  return (
    <>
      <SameAs
        path={`/allocation_candidates?${key.slice(0, key.lastIndexOf(' '))}`}
        commands={[{ what: 'Why, by command', command: `placement candidate why ${argumentsOf(fields)}` }]}
      />
      {/* If the query is about one host, its explanation comes first. */}
      {fields.tree === '' ? null : whyNot}
      <section>
        <AsOf at={count.at ?? found.at} follows />
        <div class="heading-row">
          <h2>How many fit</h2>
          {unused.length === 0 ? (
            <Link to={urlOf('fleet', undefined, searchOf({ ...fields, tree: '', order: '' }))}>
              Show it on the grid
            </Link>
          ) : (
            <span>No provider has any {unused.map(visible).join(', ')}.</span>
          )}
        </div>
        {count.error !== undefined ? (
          <Trouble error={count.error} what="The count" />
        ) : count.value === undefined ? (
          <p class="faint">Counting…</p>
        ) : (
          <>
            <p class="count" role="status">
              <strong>{numberText(count.value.count)}</strong>{' '}
              {count.value.exact ? 'can be claimed at the same time' : 'or more can be claimed at the same time'}
            </p>
            {count.value.trees.length === 0 ? null : (
              <ul class="chips counts">
                {count.value.trees.map(({ uuid, name, count: here }) => (
                  <li key={uuid}>
                    <ProviderLink uuid={uuid} name={name} /> <span class="faint">{numberText(here)}</span>
                  </li>
                ))}
              </ul>
            )}
          </>
        )}
      </section>
      <section>
        <h2>Why</h2>
        {explained.error !== undefined ? (
          <Trouble error={explained.error} what="The explanation" />
        ) : explained.value === undefined ? (
          <p class="faint">Asking…</p>
        ) : (
          <>
            <Funnel explanation={explained.value} fields={fields} />
            {nearest.length === 0 ? null : <h3>Hosts that come nearest without fitting</h3>}
            <Nearest nearest={nearest} />
          </>
        )}
      </section>
      {fields.tree === '' ? whyNot : null}
      <section>
        <h2>Candidates</h2>
        {found.error !== undefined ? (
          <Trouble error={found.error} what="The list of candidates" />
        ) : requests === undefined ? (
          <p class="faint">Searching…</p>
        ) : requests.length === 0 ? (
          <p>There are none.</p>
        ) : (
          <>
            {requests.length === mostCandidates ? (
              <p class="faint">The first {counted(mostCandidates, 'candidate')}.</p>
            ) : null}
            <ol class="candidates">
              {requests.map(({ allocations }) => (
                <li key={Object.keys(allocations).join()}>
                  {Object.entries(allocations).map(([provider, { resources }]) => (
                    <span key={provider}>
                      <ProviderLink uuid={provider} />{' '}
                      <span class="resources">
                        <ResourcesText resources={resources} />
                      </span>
                    </span>
                  ))}
                </li>
              ))}
            </ol>
          </>
        )}
      </section>
    </>
  );
}

/** The classes that some provider has; undefined while that is not known. */
function useClassesInUse(): readonly string[] | undefined {
  const { providers, version, isComplete } = useStore(mirror);
  return useMemo(
    () =>
      isComplete
        ? [...new Set([...providers.values()].flatMap(({ inventories }) => Object.keys(inventories)))].sort(classOrder)
        : undefined,
    [isComplete, version],
  );
}

/** Links to the same query with classes that exist, where it names one that does not. */
function Suggestions({ fields, classes }: { readonly fields: QueryFields; readonly classes: readonly string[] }) {
  const wrong = fields.groups
    .flatMap(({ resources }) => resources.map(({ name }) => name))
    .find((name) => name !== '' && !classes.includes(name));
  if (wrong === undefined) return null;
  const found = suggestionsFor(wrong, classes);
  if (found.length === 0) return null;
  const withName = (name: string): QueryFields => ({
    ...fields,
    groups: fields.groups.map((group) => ({
      ...group,
      resources: group.resources.map((each) => (each.name === wrong ? { ...each, name } : each)),
    })),
  });
  return (
    <p>
      Classes with a similar name:{' '}
      {found.map((name, index) => (
        <span key={name}>
          {index === 0 ? '' : ', '}
          <Link to={urlOf('fit', undefined, searchOf(withName(name)))}>{visible(name)}</Link>
        </span>
      ))}
    </p>
  );
}
