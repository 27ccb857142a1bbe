import { urlOf } from '../route.tsx';

/** Whether a name is `.` or `..`, which browsers take out of each path. */
export const isDots = (name: string): boolean => /^\.{1,2}$/.test(name);

/**
 * The URL of the limits of a project. The service takes an escaped `/` in the path of a page for a separator: a project
 * that cannot be a part of a path is named in the query.
 */
export const urlOfLimits = (project: string): string =>
  isDots(project) || project.includes('/') ? urlOf('limits', undefined, { project }) : urlOf('limits', project);
