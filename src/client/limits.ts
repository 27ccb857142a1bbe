import { allOptional, optional } from './filters.ts';
import { versionNumber } from './microversions.ts';
import { type Ask, type CallOptions, isGuarded, listed, pathOf, type WriteOptions } from './operation.ts';
import { allPages, type Page } from './pages.ts';

/** A limit as the service shows it. */
export type ShownLimit = {
  /** Null where the project lifts the default. */
  readonly limit: number | null;
  readonly used: number;
  /** Whether it is a value of the project or the default. */
  readonly from: 'project' | 'default';
};

/** The limits of a project, with the defaults where the project has no value, and its usages of the limited resources. */
export type ProjectLimits = {
  readonly project_id: string;
  /** By resource class. */
  readonly resources: { readonly [resourceClass: string]: ShownLimit };
  /** How many consumers may have allocations, by consumer type: `all` is for any type, `unknown` for consumers without a type. */
  readonly consumers: { readonly [consumerType: string]: ShownLimit };
  /** Null if the project has no explicit values. */
  readonly generation: number | null;
};

/** The values that replace all present values of a project. */
export type NewProjectLimits = {
  /** A number; null lifts the default; or a value that `show` returns: a value from the default is left out. */
  readonly resources?: { readonly [resourceClass: string]: number | null | ShownLimit } | undefined;
  readonly consumers?: { readonly [consumerType: string]: number | null | ShownLimit } | undefined;
  /** The known generation; null if the project has no explicit values. */
  readonly generation: number | null;
};

/** The values for projects without an explicit value for a class or type. */
export type DefaultLimits = {
  readonly resources: { readonly [resourceClass: string]: number };
  readonly consumers: { readonly [consumerType: string]: number };
  /** Null where there are none. */
  readonly generation: number | null;
};

/** With which condition limits are deleted. */
export type LimitDeletion = WriteOptions & {
  /** The generation that they must have. */
  readonly generation?: number | undefined;
};

/** How much projects may have; from 2.7. */
export type LimitCalls = {
  /** The limits of all projects with explicit values, in the order of their ids, page by page. */
  list(options?: CallOptions): AsyncGenerator<ProjectLimits, void>;
  /** One page: at most `limit` projects (default 1000), after the id `marker`. */
  page(query?: Page, options?: CallOptions): Promise<readonly ProjectLimits[]>;
  /** The limits of any project, with the defaults that hold for it. */
  show(projectId: string, options?: CallOptions): Promise<ProjectLimits>;
  /** Replaces the values of a project. @throws ApiError 409 if the generation is another one */
  set(projectId: string, limits: NewProjectLimits, options?: WriteOptions): Promise<ProjectLimits>;
  /** Deletes the values of a project. The defaults hold from then on. @throws ApiError 404 if it has none */
  delete(projectId: string, options?: LimitDeletion): Promise<void>;
  showDefaults(options?: CallOptions): Promise<DefaultLimits>;
  /** Replaces the defaults. @throws ApiError 409 if the generation is another one */
  setDefaults(
    limits: Partial<DefaultLimits> & Pick<DefaultLimits, 'generation'>,
    options?: WriteOptions,
  ): Promise<DefaultLimits>;
  /** Deletes the defaults. @throws ApiError 404 if there are none */
  deleteDefaults(options?: LimitDeletion): Promise<void>;
};

const since = versionNumber('2.7');
const root = pathOf('limits');
const defaults = pathOf('default_limits');

/** Makes the calls about limits. */
export function limitCalls(ask: Ask): LimitCalls {
  const page: LimitCalls['page'] = async ({ limit, marker } = {}, options) => {
    return listed(ask, 'limits', { since, query: allOptional({ limit, marker }) }, options);
  };
  const put = <Shown>(path: string, body: object, options: WriteOptions | undefined): Promise<Shown> =>
    ask({ method: 'PUT', path, since, body: () => body, repeatable: isGuarded }, options);
  const remove = (path: string, { generation, ...options }: LimitDeletion = {}): Promise<void> =>
    ask({ method: 'DELETE', path, since, query: optional('generation', generation) }, options);
  return {
    page,
    list: (options) => allPages((more) => page(more, options)),
    show: (projectId, options) => ask({ method: 'GET', path: root + pathOf(projectId), since }, options),
    set: (projectId, { resources = {}, consumers = {}, generation }, options) =>
      put(root + pathOf(projectId), { resources, consumers, generation }, options),
    delete: (projectId, options) => remove(root + pathOf(projectId), options),
    showDefaults: (options) => ask({ method: 'GET', path: defaults, since }, options),
    setDefaults: ({ resources = {}, consumers = {}, generation }, options) =>
      put(defaults, { resources, consumers, generation }, options),
    deleteDefaults: (options) => remove(defaults, options),
  };
}
