import { Name } from './name.tsx';
import { Link, urlOf } from './route.tsx';
import { visible } from './text.ts';

/** A consumer as a list shows it. Before 2.9 answers have no names. */
export type Named = { readonly uuid: string; readonly name: string | null | undefined };

/** A link to a consumer: its name if it has one, and its UUID. @param props.project by which its page finds its waiting claim */
export function ConsumerLink({ uuid, name, project }: Named & { readonly project?: string }) {
  return (
    <div class="consumer">
      <Link to={urlOf('consumers', uuid, { project })}>
        {name === undefined || name === null ? null : (
          <>
            <Name text={name} />{' '}
          </>
        )}
        <code>{visible(uuid)}</code>
      </Link>
    </div>
  );
}

/** A consumer in a text without markup, such as a label: `job-7 (UUID)`, or its UUID alone. */
export const consumerText = ({ uuid, name }: Named): string =>
  name === undefined || name === null ? visible(uuid) : `${visible(name)} (${visible(uuid)})`;
