import { useEffect, useMemo } from 'preact/hooks';
import { compareNames } from '../../src/text/strings.ts';
import { mirror, openMirror } from '../mirror.ts';
import { ProviderLink } from '../provider_link.tsx';
import { navigate, urlOf, useOfUrl, useRoute } from '../route.tsx';
import { useStore } from '../store.ts';
import { counted } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { uuidOf } from '../uuid.ts';

/** How many providers are listed. */
const mostListed = 200;

/** Finds providers, also below roots, by a part of their name or UUID. */
export function FindProvider() {
  const { query } = useRoute();
  const searched = query.get('name') ?? '';
  const [text, setText] = useOfUrl(searched);
  useEffect(openMirror, []);
  const { providers, version, isComplete, error } = useStore(mirror);
  const found = useMemo(() => {
    const wanted = searched.toLowerCase();
    if (wanted === '') return [];
    return [...providers.values()]
      .filter(({ uuid, name }) => name.toLowerCase().includes(wanted) || uuid.includes(wanted))
      .sort((a, b) => compareNames(a.name, b.name));
  }, [searched, version]);
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const wanted = text.trim();
    const uuid = uuidOf(wanted);
    navigate(uuid === undefined ? urlOf('providers', undefined, { name: wanted }) : urlOf('providers', uuid));
  };
  return (
    <>
      <h1>Provider</h1>
      <form class="find" onSubmit={find}>
        <label>
          <span>Part of a name or UUID</span>
          <input type="text" value={text} onInput={(event) => setText(event.currentTarget.value)} />
        </label>
        <button type="submit">Find</button>
      </form>
      {error === undefined ? null : <Trouble error={error} what="The list of providers" />}
      {error !== undefined && found.length === 0 ? null : searched === '' ? (
        <p class="faint">Providers are also chosen in the fleet.</p>
      ) : (
        <p role="status">
          {found.length > mostListed
            ? `The first ${mostListed} of ${counted(found.length, 'provider')}`
            : found.length > 0
              ? counted(found.length, 'provider')
              : isComplete
                ? 'No provider has this in its name or UUID.'
                : 'Reading…'}
        </p>
      )}
      <ul class="found">
        {found.slice(0, mostListed).map(({ uuid, name }) => (
          <li key={uuid}>
            <ProviderLink uuid={uuid} name={name} />
          </li>
        ))}
      </ul>
    </>
  );
}
