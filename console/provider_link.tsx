import { Name } from './name.tsx';
import { nameOf, names } from './names.ts';
import { Link, urlOf } from './route.tsx';
import { useStore } from './store.ts';
import { shortUuid } from './text.ts';

/** A link to a provider, with its name once that is known. */
export function ProviderLink({ uuid, name }: { readonly uuid: string; readonly name?: string | undefined }) {
  useStore(names);
  const text = name ?? nameOf(uuid);
  return (
    <Link to={urlOf('providers', uuid)}>
      {text === undefined ? <code>{shortUuid(uuid)}…</code> : <Name text={text} />}
    </Link>
  );
}
