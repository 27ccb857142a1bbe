import type { Action } from './action.ts';
import { read } from './read_actions.ts';
import { type Limits, projectUse, type State, showsExactly } from './state.ts';

/*
 * Limits of projects, from 2.7 on.
 */

const newestLimits = 2007;
const pathOf = (project: string) => `/limits/${project}`;

/** The values that a project is to have. */
export type NewLimits = Omit<Limits, 'generation'> & { readonly generation: number | null };

/** How the limits of a project are shown. */
function shown(state: State, project: string) {
  const limits = state.limits[project];
  const use = projectUse(state, project);
  const values = (kind: 'resources' | 'consumers') =>
    Object.fromEntries(
      Object.entries(limits?.[kind] ?? {}).map(([name, limit]) => [
        name,
        { limit, used: use[kind][name] ?? 0, from: 'project' },
      ]),
    );
  return {
    project_id: project,
    resources: values('resources'),
    consumers: values('consumers'),
    generation: limits?.generation ?? null,
  };
}

/** GET /limits/{project}. */
export const readLimits = (project: string): Action =>
  read(newestLimits, pathOf(project), (state, { status, body }) => {
    return status === 200 && showsExactly(body, shown(state, project));
  });

const isKnown = (state: State, project: string, generation: number | null): boolean =>
  (state.limits[project]?.generation ?? null) === generation;

/** PUT /limits/{project}. The usages of the answer are read after the write: the next read shows them. */
export const setLimits = (project: string, { generation, ...values }: NewLimits): Action => ({
  method: 'PUT',
  path: pathOf(project),
  microversion: newestLimits,
  body: { ...values, generation },
  after: (state, reply) => {
    if (!isKnown(state, project, generation)) return reply?.status === 409 ? [state] : [];
    if (reply !== undefined && reply.status !== 200) return [];
    const last = generation ?? state.former[project]?.[0] ?? 0;
    return [{ ...state, limits: { ...state.limits, [project]: { ...values, generation: last + 1 } } }];
  },
});

/** DELETE /limits/{project}. */
export const deleteLimits = (project: string): Action => ({
  method: 'DELETE',
  path: pathOf(project),
  microversion: newestLimits,
  after: (state, reply) => {
    const { [project]: present, ...others } = state.limits;
    if (reply !== undefined && reply.status !== (present === undefined ? 404 : 204)) return [];
    const former = present === undefined ? {} : { [project]: [present.generation] };
    return [{ ...state, limits: others, former: { ...state.former, ...former } }];
  },
});
