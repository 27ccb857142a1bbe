import { shellWord } from '../src/cli/shell_word.ts';
import { Copy } from './copy.tsx';
import { serviceUrl } from './route.tsx';
import { serverVersion } from './session.ts';
import { useStore } from './store.ts';
import { curlOf, visible } from './text.ts';

/** A command, and what it does. */
export type Shown = { readonly what: string; readonly command: string };

/**
 * The request and the commands that show the same as a view, and the commands that change its content, which the
 * console itself does not do.
 *
 * @param props.path the path and the query of the request
 */
export function SameAs({ path, commands }: { readonly path: string; readonly commands: readonly Shown[] }) {
  const version = useStore(serverVersion) ?? '2.2';
  const all: readonly Shown[] = [{ what: 'The same by curl', command: curlOf(serviceUrl, path, version) }, ...commands];
  return (
    <details class="same-as">
      <summary>The same by curl and command</summary>
      <p class="faint">
        The command <code>placement</code> and these lines take the service and the token from the environment:{' '}
        <code>export OS_ENDPOINT={visible(shellWord(serviceUrl))} OS_TOKEN=…</code>
      </p>
      <dl>
        {all.map(({ what, command }) => (
          <div key={what}>
            <dt>{what}</dt>
            <dd>
              <code>{visible(command)}</code> <Copy text={command} what={`the command: ${what}`} />
            </dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
