import { AsOf } from '../as_of.tsx';
import { fieldsOf, find, trimmed } from '../filter.tsx';
import { NoMore, Pages } from '../pages.tsx';
import { Reading } from '../reading.tsx';
import { changed, navigate, urlOf, useOfUrl, useRoute } from '../route.tsx';
import { placement } from '../session.ts';
import { numberText } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { longPauseMs, useLoaded } from '../use_loaded.ts';
import { useRenewal } from '../use_renewal.ts';
import { uuidOf } from '../uuid.ts';
import { ConsumerTable } from './consumer_table.tsx';
import { readAmounts } from './read_amounts.ts';

const pageSize = 100;
/** Within how many seconds the term of a consumer expires. */
const terms = [
  ['0', 'any time, or never'],
  ['600', '10 minutes'],
  ['3600', 'an hour'],
  ['86400', 'a day'],
  ['604800', 'a week'],
] as const;
/** How long changes are collected before the list is read again, in milliseconds. */
const pauseMs = 1_000;

/** Consumers by a part of their name, project, user and type, and a field that opens a consumer by UUID. */
export function ConsumerList() {
  const { query } = useRoute();
  const conditions = {
    project_id: query.get('project') || undefined,
    user_id: query.get('user') || undefined,
    consumer_type: query.get('type') || undefined,
    name_contains: query.get('name') || undefined,
  };
  // Another text than a number of seconds, as someone may write it into the URL, is no condition.
  const within = /^\d{1,9}$/.test(query.get('within') ?? '') ? Number(query.get('within')) : 0;
  const after = query.get('after') || undefined;
  const ofUrl = {
    uuid: '',
    project: conditions.project_id ?? '',
    user: conditions.user_id ?? '',
    type: conditions.consumer_type ?? '',
    name: conditions.name_contains ?? '',
    within: String(within),
  };
  const [fields, setFields] = useOfUrl(ofUrl);
  const loaded = useLoaded(JSON.stringify([conditions, within, after]), async (signal) => {
    const expiring_before = within > 0 ? new Date(Date.now() + within * 1000) : undefined;
    const filter = { ...conditions, expiring_before };
    const page = await placement.consumers.page({ ...filter, limit: pageSize + 1, marker: after }, { signal });
    const consumers = page.slice(0, pageSize);
    const amounts = await readAmounts(consumers, filter, after, signal);
    return { consumers, amounts, hasMore: page.length > pageSize };
  });
  const { value, error, isLoading, again, at } = loaded;
  useChanges('any', again, pauseMs);
  // Changes do not include a new name, owner or term.
  useRenewal(loaded, longPauseMs);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const { uuid, project, user, type: written } = trimmed(fields);
    if (uuid !== '') return navigate(urlOf('consumers', uuidOf(uuid) ?? uuid));
    // Types are written in upper case, except `unknown`.
    const type = written.toLowerCase() === 'unknown' ? 'unknown' : written.toUpperCase();
    // Blanks belong to a name, and a field that holds nothing else is empty.
    const name = fields.name.trim() === '' ? '' : fields.name;
    const ends = fields.within === '0' ? '' : fields.within;
    find(urlOf('consumers', undefined, { project, user, type, name, within: ends }), again);
  };
  const field = fieldsOf(fields, setFields);
  const shown = value?.consumers;
  const urlAfter = (marker: string) => urlOf('consumers', undefined, changed(query, { after: marker }));
  return (
    <>
      <h1>Consumers</h1>
      <form class="find" onSubmit={submit}>
        {field('uuid', 'UUID')}
        {field('name', 'Part of the name')}
        {field('project', 'Project')}
        {field('user', 'User')}
        {field('type', 'Type')}
        <label>
          <span>Ends within</span>
          <select
            value={fields.within}
            onChange={(event) => setFields({ ...fields, within: event.currentTarget.value })}
          >
            {terms.some(([seconds]) => seconds === fields.within) ? null : (
              <option value={fields.within}>{numberText(Number(fields.within))} seconds</option>
            )}
            {terms.map(([seconds, text]) => (
              <option key={seconds} value={seconds}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <button type="submit">Find</button>
      </form>
      <AsOf at={at} follows />
      {error === undefined ? null : (
        <Trouble error={error} what="The list of consumers" mayAskByProject={conditions.project_id === undefined} />
      )}
      {shown === undefined ? (
        <Reading isLoading={isLoading} />
      ) : shown.length === 0 ? (
        <p role="status">
          {after === undefined ? 'There is no such consumer.' : <NoMore of="consumers" first={urlAfter('')} />}
        </p>
      ) : (
        <>
          <ConsumerTable consumers={shown} amounts={value?.amounts} isPart={value?.hasMore || after !== undefined} />
          <Pages
            of="consumers"
            first={after === undefined ? undefined : urlAfter('')}
            next={value?.hasMore ? urlAfter(shown.at(-1)?.uuid ?? '') : undefined}
          />
        </>
      )}
    </>
  );
}
