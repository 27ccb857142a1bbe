/** The rules of `placement-manage policy teams`, in their order, each with what it lets a project do. */
const ofOwnProject = '(role:member and project_id:%(project_id)s)';
const readOfOwnProject = '((role:member or role:reader) and project_id:%(project_id)s)';

const rules: readonly (readonly [comment: string, ...rules: readonly (readonly [name: string, check: string])[]])[] = [
  [
    'Members claim by query, renew and release what their project has, and end the wait of its claims.',
    ['placement:allocations:place', ofOwnProject],
    ['placement:waiting:delete', ofOwnProject],
    ['placement:consumers:term', ofOwnProject],
    ['placement:allocations:delete', ofOwnProject],
  ],
  [
    'Members and readers see the consumers and what they hold, the usages, limits and waiting claims of their project.',
    ['placement:allocations:list', readOfOwnProject],
    ['placement:consumers:show', readOfOwnProject],
    ['placement:consumers:list', readOfOwnProject],
    ['placement:usages', readOfOwnProject],
    ['placement:limits:show', readOfOwnProject],
    ['placement:waiting:list', readOfOwnProject],
    ['placement:holdings:list', readOfOwnProject],
    ['placement:usage_records:list', readOfOwnProject],
  ],
];

/**
 * A policy file for teams that share a pool: members claim by query, renew, release and see for their own project, readers see,
 * and administrators and services do everything. Requests that show or name hosts (candidates, explanations,
 * changes, providers, claims that name their providers) are allowed to administrators and services only. Empty allocations name none.
 */
export function teamsPolicy(): string {
  const groups = rules.map(([comment, ...named]) =>
    [`# ${comment}`, ...named.map(([name, check]) => `"${name}": "rule:admin_or_service_api or ${check}"`)].join('\n'),
  );
  return `${groups.join('\n\n')}\n`;
}
