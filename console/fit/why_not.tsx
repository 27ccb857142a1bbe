import { useState } from 'preact/hooks';
import type { CandidateQuery } from '../../src/client/candidates.ts';
import { isNotFound } from '../../src/client/errors.ts';
import { compareNames } from '../../src/text/strings.ts';
import { mirror } from '../mirror.ts';
import { Name } from '../name.tsx';
import { Reading } from '../reading.tsx';
import { Link, navigate, urlOf } from '../route.tsx';
import { placement } from '../session.ts';
import { useStore } from '../store.ts';
import { counted } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { uuidOf } from '../uuid.ts';
import { Funnel, Nearest } from './explained.tsx';
import { named } from './named.ts';
import { type QueryFields, searchOf } from './query_fields.ts';

/** How long changes are collected before the explanation is read again, in milliseconds. */
const pauseMs = 2_000;
/** How many providers are offered for a part of a name. */
const mostChoices = 20;

/** Why the query does not fit one host, which is named by name or UUID. */
export function WhyNot({
  query,
  asked,
  fields,
}: {
  readonly query: Omit<CandidateQuery, 'limit'>;
  readonly asked: string;
  readonly fields: QueryFields;
}) {
  const [text, setText] = useState(fields.tree);
  const host = fields.tree;
  // A part of a name is looked up among all providers, once they are read.
  const { isComplete } = useStore(mirror);
  const uuid = uuidOf(host);
  const key = `${asked} ${host} ${uuid !== undefined || isComplete}`;
  const { value, error, isLoading, again } = useLoaded(host === '' ? undefined : key, async (signal) => {
    const exact =
      uuid === undefined
        ? await placement.providers.list({ name: host }, { signal })
        : [
            await placement.providers
              .show(uuid, { signal })
              .catch((error: unknown) => (isNotFound(error) ? undefined : Promise.reject(error))),
          ];
    const [found, ...others] = exact[0] === undefined ? named(host, mirror.get().providers.values()) : [exact[0]];
    if (found === undefined || others.length > 0) return { several: found === undefined ? [] : [found, ...others] };
    const explanation = await placement.candidateQuestions.explain({ ...query, tree: found.uuid }, { signal });
    return { several: [], explanation };
  });
  useChanges('any', again, pauseMs);
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    navigate(urlOf('fit', undefined, searchOf({ ...fields, tree: text.trim() })), 'replace');
  };
  return (
    <section>
      <h2>Why not this host?</h2>
      <form class="find" onSubmit={find}>
        <label>
          <span>Name, part of a name, or UUID of a provider</span>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit">Why not?</button>
      </form>
      {error !== undefined ? <Trouble error={error} what="The explanation" /> : null}
      {value === undefined ? (
        <Reading isLoading={host !== '' && isLoading} text="Asking…" />
      ) : value.several.length > 0 ? (
        <>
          <p role="status">
            {counted(value.several.length, 'provider')} have this in their name
            {value.several.length > mostChoices ? `; the first ${mostChoices}` : ''}. Which one?
          </p>
          <ul class="chips">
            {value.several
              .toSorted((a, b) => compareNames(a.name, b.name))
              .slice(0, mostChoices)
              .map(({ uuid, name }) => (
                <li key={uuid}>
                  <Link to={urlOf('fit', undefined, searchOf({ ...fields, tree: uuid }))}>
                    <Name text={name} />
                  </Link>
                </li>
              ))}
          </ul>
        </>
      ) : value.explanation === undefined ? (
        <p role="status">No provider has this in its name or UUID.</p>
      ) : (
        <>
          <Funnel explanation={value.explanation} fields={fields} />
          <Nearest nearest={value.explanation.nearest} />
        </>
      )}
    </section>
  );
}
