import { useState } from 'preact/hooks';
import type { CandidateQuery } from '../../src/client/candidates.ts';
import { isNotFound } from '../../src/client/errors.ts';
import { navigate, urlOf } from '../route.tsx';
import { placement } from '../session.ts';
import { Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { useLoaded } from '../use_loaded.ts';
import { isUuid } from '../uuid.ts';
import { Funnel, Nearest } from './explained.tsx';
import { type QueryFields, searchOf } from './query_fields.ts';

/** How long changes are collected before it is asked again, in milliseconds. */
const pauseMs = 2_000;

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
  const { value, error, isLoading, again } = useLoaded(host === '' ? undefined : `${asked} ${host}`, async (signal) => {
    const [found] = isUuid(host)
      ? [
          await placement.providers
            .show(host, { signal })
            .catch((error: unknown) => (isNotFound(error) ? undefined : Promise.reject(error))),
        ]
      : await placement.providers.list({ name: host }, { signal });
    return {
      host: found,
      explanation: found && (await placement.candidateQuestions.explain({ ...query, tree: found.uuid }, { signal })),
    };
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
          <span>Name or UUID of a provider</span>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit">Why not?</button>
      </form>
      {error !== undefined ? <Trouble error={error} what="The explanation" /> : null}
      {value === undefined ? (
        host !== '' && isLoading ? (
          <p class="faint">Asking…</p>
        ) : null
      ) : value.explanation === undefined ? (
        <p role="status">No provider has this name or UUID.</p>
      ) : (
        <>
          <Funnel explanation={value.explanation} fields={fields} />
          <Nearest nearest={value.explanation.nearest} />
        </>
      )}
    </section>
  );
}
