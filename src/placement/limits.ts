/** The values of a project, or the defaults: by the name of a resource class, and by consumer type. Null lifts a default. */
export type LimitValues = {
  readonly resources: ReadonlyMap<string, number | null>;
  /** `all` is for the consumers of any type, `unknown` for consumers without a type. */
  readonly consumers: ReadonlyMap<string, number | null>;
};

/** What a value limits: the amount of a resource class, or the number of consumers that have something. */
export type LimitKind = keyof LimitValues;

/** All limits of the deployment. */
export type ProjectLimits = {
  /** Whether usages are counted. They are before the first limit is in force. */
  readonly isCounting: boolean;
  readonly defaults: LimitValues;
  /** The projects with explicit values. */
  readonly projects: ReadonlyMap<string, LimitValues>;
};

/** The consumer type that means any type. */
export const anyType = 'all';

const noValues: LimitValues = { resources: new Map(), consumers: new Map() };

/** Without any limit. */
export const noLimits: ProjectLimits = { isCounting: false, defaults: noValues, projects: new Map() };

/** A limit that is in force for a project, and whose value it is. */
export type LimitInForce = { readonly limit: number; readonly from: 'project' | 'default' };

/**
 * The limit of a project for a class or a type: the value of the project, otherwise the default. A null of the project lifts the default.
 *
 * @returns undefined where there is no limit
 */
export function limitInForce(
  { defaults, projects }: ProjectLimits,
  project: string,
  kind: LimitKind,
  name: string,
): LimitInForce | undefined {
  const own = projects.get(project)?.[kind].get(name);
  if (own === null) return undefined;
  if (own !== undefined) return { limit: own, from: 'project' };
  const limit = defaults[kind].get(name);
  return limit === undefined || limit === null ? undefined : { limit, from: 'default' };
}

/** All limits that are in force for a project, by name: the values of the project, and the defaults that it does not lift. */
export function limitsInForce(
  limits: ProjectLimits,
  project: string,
  kind: LimitKind,
): ReadonlyMap<string, LimitInForce> {
  const names = new Set([...(limits.projects.get(project)?.[kind].keys() ?? []), ...limits.defaults[kind].keys()]);
  return new Map(
    [...names].flatMap((name) => {
      const found = limitInForce(limits, project, kind, name);
      return found === undefined ? [] : [[name, found] as const];
    }),
  );
}
