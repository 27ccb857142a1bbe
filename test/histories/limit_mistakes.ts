import type { Mistake } from './mistake.ts';

const usages = 'db/statements/claims/project_usages.ts';

/** The commit of each write takes a while. */
const slowCommits: readonly string[] = [
  'create function slowly() returns trigger language plpgsql as $$begin perform pg_sleep(0.04); return null; end$$',
  `create constraint trigger slowly after insert or delete on allocations deferrable initially deferred
    for each row execute function slowly()`,
];

/** Mistakes about limits. */
export const limitMistakes: readonly Mistake[] = [
  {
    name: 'what a project uses is stale: what was added last is not counted',
    scene: 'limits',
    file: usages,
    from: 'select * from project_usages where project_id = k.project_id offset 0',
    to: 'select * from project_usages where project_id = k.project_id and ctid <> (select max(ctid) from project_usages) offset 0',
  },
  {
    name: 'what a project uses is read before the project is locked',
    scene: 'limits',
    file: usages,
    from: 'if (numbers.length === 0) return [];',
    to: 'if (numbers.length >= 0) return [];',
    statements: slowCommits,
    processes: 2,
  },
  {
    name: 'a change of owner is not counted',
    scene: 'limits',
    file: 'src/api/consumers/consumers.ts',
    from: 'projectUsageChanges([before], [after])',
    to: 'projectUsageChanges([], [])',
  },
  {
    name: 'a consumer that was removed is still counted',
    scene: 'limits',
    file: usages,
    from: 'where exists (select from usage_counting)\n        group by',
    to: 'where false\n        group by',
  },
  {
    name: 'a POST is counted consumer by consumer',
    scene: 'limits',
    file: 'src/claims/judge_batch.ts',
    from: 'limitGuards(fleet, usages, options)',
    to: 'limitGuards(fleet, usages.filter(({ amount }) => amount > 0), options)',
  },
  {
    name: 'the first limit does not wait for the writes under way',
    scene: 'limits',
    file: 'db/statements/limits.ts',
    from: "await untilWritesEnd(database);\n  await correctUsages(database, 'all');",
    to: "await correctUsages(database, 'all');",
    statements: slowCommits,
    processes: 2,
    isAlone: true,
  },
];
