import { useState } from 'preact/hooks';
import type { ProjectLimits, ShownLimit } from '../../src/client/limits.ts';
import { Amount } from '../amount.tsx';
import { Bar } from '../meter.tsx';
import { Name } from '../name.tsx';
import { NoMore, Pages } from '../pages.tsx';
import { Reading } from '../reading.tsx';
import { Link, navigate, urlOf, useRoute } from '../route.tsx';
import { placement } from '../session.ts';
import { Table } from '../table.tsx';
import { percentText, visible } from '../text.ts';
import { Trouble } from '../trouble.tsx';
import { useChanges } from '../use_changes.ts';
import { type Loaded, longPauseMs, useLoaded } from '../use_loaded.ts';
import { useRenewal } from '../use_renewal.ts';
import { isDots, urlOfLimits } from './url_of_limits.ts';

const pageSize = 50;

/** The limits and usages of projects: of all projects with explicit limits, or of one project. */
export function LimitsView({ id }: { readonly id: string | undefined }) {
  return id === undefined ? <AllLimits /> : <LimitsOfProject key={id} project={id} />;
}

/** Reads again after claims, which changes include, and from time to time for new limits, which changes do not include. */
function useLimitChanges(loaded: Loaded<unknown>): void {
  useChanges('any', loaded.again);
  useRenewal(loaded, longPauseMs);
}

/** The limits of projects without explicit ones. */
function Defaults() {
  const loaded = useLoaded('defaults', (signal) => placement.limits.showDefaults({ signal }));
  useRenewal(loaded, longPauseMs);
  const { value, error } = loaded;
  const trouble = error === undefined ? null : <Trouble error={error} what="The list of defaults" />;
  if (value === undefined) return trouble;
  const rows = [
    ...Object.entries(value.resources),
    ...Object.entries(value.consumers).map(([type, limit]) => [consumersOfType(type), limit] as const),
  ];
  return (
    <section>
      <h2>Defaults</h2>
      {trouble}
      {rows.length === 0 ? (
        <p class="faint">There are none: a project without limits of its own has no limits.</p>
      ) : (
        <>
          <p class="faint">
            They hold for each project without a limit of its own. What such a project uses: enter it above.
          </p>
          <Table name="Table of default limits" headings={['limit of', { text: 'limit', kind: 'number' }]}>
            {rows.map(([name, limit]) => (
              <tr key={name}>
                <th scope="row">{visible(name)}</th>
                <td class="number">
                  <Amount of={name} is={limit} />
                </td>
              </tr>
            ))}
          </Table>
        </>
      )}
    </section>
  );
}

/** The limits on the number of consumers of a type. */
const consumersOfType = (type: string): string => (type === 'all' ? 'consumers' : `consumers of type ${type}`);

function AllLimits() {
  const { query } = useRoute();
  const after = query.get('after') ?? undefined;
  const [project, setProject] = useState('');
  const loaded = useLoaded(after ?? '', (signal) =>
    placement.limits.page({ limit: pageSize + 1, marker: after }, { signal }),
  );
  const { value, error, isLoading } = loaded;
  useLimitChanges(loaded);
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    if (project.trim() !== '') navigate(urlOfLimits(project.trim()));
  };
  const shown = value?.slice(0, pageSize);
  return (
    <>
      <h1>Limits</h1>
      <form class="find" onSubmit={find}>
        <label>
          <span>Project</span>
          <input type="text" value={project} onInput={(event) => setProject(event.currentTarget.value)} />
        </label>
        <button type="submit">Show</button>
      </form>
      {error === undefined ? null : <Trouble error={error} what="The list of limits" mayAskByProject />}
      {after === undefined && error === undefined ? <Defaults /> : null}
      {shown === undefined ? (
        <Reading isLoading={isLoading} />
      ) : shown.length === 0 ? (
        <p role="status">
          {after === undefined ? (
            'No project has limits of its own. Enter a project above to see the defaults that hold for it.'
          ) : (
            <NoMore of="projects" first={urlOf('limits')} />
          )}
        </p>
      ) : (
        <>
          <p class="faint">Projects with limits of their own, and the defaults that hold for them</p>
          {shown.map((limits) => (
            <section key={limits.project_id}>
              <h2>
                <Link to={urlOfLimits(limits.project_id)}>
                  <Name text={limits.project_id} />
                </Link>
              </h2>
              <LimitTable limits={limits} />
            </section>
          ))}
          <Pages
            of="projects"
            first={after === undefined ? undefined : urlOf('limits')}
            next={
              (value?.length ?? 0) <= pageSize
                ? undefined
                : urlOf('limits', undefined, { after: shown.at(-1)?.project_id })
            }
          />
        </>
      )}
    </>
  );
}

function LimitsOfProject({ project }: { readonly project: string }) {
  const loaded = useLoaded(isDots(project) ? undefined : project, (signal) =>
    placement.limits.show(project, { signal }),
  );
  const { value, error, isLoading } = loaded;
  useLimitChanges(loaded);
  return (
    <>
      <header class="view-header">
        <p class="faint">project</p>
        <h1>
          <Name text={project} />
        </h1>
        <p>
          <Link to={urlOf('consumers', undefined, { project })}>Its consumers</Link>,{' '}
          <Link to={urlOf('holdings', undefined, { project })}>what they hold and where</Link>,{' '}
          <Link to={urlOf('waiting', undefined, { project })}>its waiting claims</Link>
        </p>
      </header>
      {error === undefined ? null : <Trouble error={error} what="What the project may have" />}
      {isDots(project) ? (
        <p role="status">Its limits cannot be read: browsers remove “{project}” from a path.</p>
      ) : value === undefined ? (
        <Reading isLoading={isLoading} />
      ) : (
        <LimitTable limits={value} />
      )}
    </>
  );
}

/** The limits of a project, each with a bar. */
function LimitTable({ limits: { project_id: project, resources, consumers } }: { readonly limits: ProjectLimits }) {
  const rows: readonly (readonly [name: string, limit: ShownLimit])[] = [
    ...Object.entries(resources),
    ...Object.entries(consumers).map(([type, limit]) => [consumersOfType(type), limit] as const),
  ];
  if (rows.length === 0) return <p role="status">Nothing limits this project.</p>;
  return (
    <Table
      name={`Limits of project ${visible(project)}`}
      headings={[
        'limit of',
        { text: 'used', kind: 'number' },
        { text: 'limit', kind: 'number' },
        { text: '%', kind: 'number', title: 'the part of the limit that is used' },
        { text: 'used of the limit', kind: 'bar-column' },
        'from',
      ]}
    >
      {rows.map(([name, { used, limit, from }]) => {
        // A limit of 0 has no fraction, unless something is used.
        const part = limit === null || (limit === 0 && used === 0) ? Number.NaN : used / limit;
        return (
          <tr key={name}>
            <th scope="row">{visible(name)}</th>
            <td class="number">
              <Amount of={name} is={used} />
            </td>
            <td class="number">{limit === null ? 'none' : <Amount of={name} is={limit} />}</td>
            <td class="number">{percentText(part)}</td>
            <td class="bar-column">
              <Bar part={part} />
            </td>
            <td>{from}</td>
          </tr>
        );
      })}
    </Table>
  );
}
