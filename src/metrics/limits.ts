import type { Database } from '../../db/engine/connect.ts';
import { readLimits } from '../../db/statements/limits.ts';
import { shownLimits } from '../api/limits.ts';
import type { CountingOptions } from '../claims/limits.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { escapeLabel } from './capacity.ts';

/** For how many projects with values of their own the limits are reported. */
const mostProjects = 1_000;

const figures = [
  {
    name: 'placement_limit',
    help: 'How much a project may have of a class, or how many consumers of a type.',
    of: 'limit',
  },
  { name: 'placement_limit_used', help: 'How much a project has of what placement_limit limits.', of: 'used' },
] as const;

/**
 * The limits of projects with values of their own as gauges in the text format of Prometheus, with the defaults that hold for them. Empty
 * while there is no limit.
 */
export async function limitsText(
  database: Pick<Database, 'kysely'>,
  { limits }: Pick<Fleet, 'limits'>,
  options: CountingOptions,
): Promise<string> {
  if (!limits.isCounting) return '';
  const read = await readLimits(database, { after: '', limit: mostProjects }, options.incompleteProject);
  const rows = read.projects.flatMap((each) => {
    const { project_id, resources, consumers } = shownLimits(each, read.defaults, options);
    const named = [
      ...Object.entries(resources),
      ...Object.entries(consumers).map(([type, shown]) => [`consumers ${type}`, shown] as const),
    ];
    return named.flatMap(([of, { limit, used }]) => (limit === null ? [] : [{ project: project_id, of, limit, used }]));
  });
  return figures
    .map(({ name, help, of: figure }) => {
      const lines = rows.map(
        ({ project, of, ...row }) =>
          `${name}{project="${escapeLabel(project)}",of="${escapeLabel(of)}"} ${row[figure]}\n`,
      );
      return `# HELP ${name} ${help}\n# TYPE ${name} gauge\n${lines.join('')}`;
    })
    .join('');
}
