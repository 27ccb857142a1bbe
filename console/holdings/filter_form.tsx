import { fieldsOf, find, trimmed } from '../filter.tsx';
import { useOfUrl } from '../route.tsx';
import { type HolderFilter, urlOfHoldings } from './holder_filter.ts';

/** The fields by which holders are found. */
export function FilterForm({ filter, again }: { readonly filter: HolderFilter; readonly again: () => void }) {
  const [fields, setFields] = useOfUrl(filter);
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const wanted = trimmed(fields);
    find(
      urlOfHoldings({
        ...wanted,
        class: wanted.class.toUpperCase(),
        in: wanted.provider === '' ? '' : wanted.in,
        after: '',
        sort: '',
      }),
      again,
    );
  };
  const field = fieldsOf(fields, setFields);
  return (
    <form class="find" onSubmit={submit}>
      {field('project', 'Project')}
      {field('user', 'User')}
      {field('class', 'Resource class')}
      {field('provider', 'Provider (name or UUID)')}
      <label class="check">
        <input
          type="checkbox"
          checked={fields.in === 'tree'}
          onChange={(event) => setFields({ ...fields, in: event.currentTarget.checked ? 'tree' : '' })}
        />
        <span>and its whole tree</span>
      </label>
      <button type="submit">Find</button>
    </form>
  );
}
