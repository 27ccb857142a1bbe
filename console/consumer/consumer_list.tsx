import { useState } from 'preact/hooks';
import { fieldsOf, find } from '../filter.tsx';
import { Pages } from '../pages.tsx';
import { ConsumerTable } from '../provider/held.tsx';
import { navigate, urlOf, useRoute } from '../route.tsx';
import { placement } from '../session.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';
import { isUuid } from '../uuid.ts';

const pageSize = 100;

/** Consumers by name, project, user and type, and a field that opens a consumer by UUID. */
export function ConsumerList() {
  const { query } = useRoute();
  const asked = {
    project_id: query.get('project') ?? undefined,
    user_id: query.get('user') ?? undefined,
    consumer_type: query.get('type') ?? undefined,
    name: query.get('name') ?? undefined,
  };
  const after = query.get('after') ?? undefined;
  const [fields, setFields] = useState({
    uuid: '',
    project: asked.project_id ?? '',
    user: asked.user_id ?? '',
    type: asked.consumer_type ?? '',
    name: asked.name ?? '',
  });
  const { value, error, isLoading, again } = useLoaded(query.toString() || 'all', (signal) =>
    placement.consumers.page({ ...asked, limit: pageSize + 1, marker: after }, { signal }),
  );
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const uuid = fields.uuid.trim();
    if (uuid !== '') return navigate(urlOf('consumers', isUuid(uuid) ? uuid.toLowerCase() : uuid));
    const { project, user, type } = fields;
    // Blanks belong to a name, and a field that holds nothing else is empty.
    const name = fields.name.trim() === '' ? '' : fields.name;
    find(urlOf('consumers', undefined, { project, user, type, name }), again);
  };
  const field = fieldsOf(fields, setFields);
  const shown = value?.slice(0, pageSize);
  const showNext = () => {
    const next = new URLSearchParams(query);
    next.set('after', shown?.at(-1)?.uuid ?? '');
    navigate(urlOf('consumers', undefined, next));
  };
  return (
    <>
      <h1>Consumers</h1>
      <form class="find" onSubmit={submit}>
        {field('uuid', 'UUID')}
        {field('name', 'Name')}
        {field('project', 'Project')}
        {field('user', 'User')}
        {field('type', 'Type')}
        <button type="submit">Find</button>
      </form>
      {error === undefined ? null : <Trouble error={error} what="The list of consumers" />}
      {shown === undefined ? (
        isLoading ? (
          <p class="faint">Reading…</p>
        ) : null
      ) : shown.length === 0 ? (
        <p role="status">There is no such consumer.</p>
      ) : (
        <>
          <ConsumerTable consumers={shown} />
          <Pages
            of="consumers"
            previous={after === undefined ? undefined : () => history.back()}
            next={(value?.length ?? 0) <= pageSize ? undefined : showNext}
          />
        </>
      )}
    </>
  );
}
