import { useState } from 'preact/hooks';
import { ProviderLink } from '../provider_link.tsx';
import { navigate, urlOf } from '../route.tsx';
import { placement } from '../session.ts';
import { Trouble } from '../trouble.tsx';
import { useLoaded } from '../use_loaded.ts';
import { isUuid } from '../uuid.ts';

/** Finds a provider by name or UUID. */
export function FindProvider() {
  const [text, setText] = useState('');
  const [asked, setAsked] = useState<string | undefined>();
  const { value, error, isLoading } = useLoaded(asked, async (signal) =>
    isUuid(asked ?? '')
      ? [await placement.providers.show(asked ?? '', { signal })]
      : placement.providers.list({ name: asked }, { signal }),
  );
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const wanted = text.trim();
    if (isUuid(wanted)) navigate(urlOf('providers', wanted.toLowerCase()));
    else if (wanted !== '') setAsked(wanted);
  };
  return (
    <>
      <h1>Provider</h1>
      <form class="find" onSubmit={find}>
        <label>
          <span>Name or UUID</span>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit">Find</button>
      </form>
      {error === undefined ? null : <Trouble error={error} what="The provider" />}
      {asked === undefined || error !== undefined ? (
        <p class="faint">Providers are also chosen in the fleet, where a search finds parts of names.</p>
      ) : isLoading ? (
        <p class="faint">Reading…</p>
      ) : value?.length === 0 ? (
        <p role="status">No provider has this name.</p>
      ) : (
        <ul>
          {value?.map(({ uuid, name }) => (
            <li key={uuid}>
              <ProviderLink uuid={uuid} name={name} />
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
