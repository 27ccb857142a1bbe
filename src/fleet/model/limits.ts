import type { LimitRows } from '../../../db/fleet/rows.ts';
import type { LimitValues, ProjectLimits } from '../../placement/limits.ts';

/** The limits as the database has them. The project '' has the defaults. */
export function limitsOf({ isCounting, projects: { '': defaults, ...projects } }: LimitRows): ProjectLimits {
  return {
    isCounting,
    defaults: valuesOf(defaults),
    projects: new Map(Object.entries(projects).map(([project, row]) => [project, valuesOf(row)])),
  };
}

const valuesOf = (row: LimitRows['projects'][string] | undefined): LimitValues => ({
  resources: new Map(Object.entries(row?.resources ?? {})),
  consumers: new Map(Object.entries(row?.consumers ?? {})),
});
