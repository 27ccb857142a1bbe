import type { Mistake } from './mistake.ts';

/** Mistakes about trees, several groups, deletions, class names and the reshaper. */
export const treeMistakes: readonly Mistake[] = [
  {
    name: 'what is below a provider that moves keeps its root',
    file: 'db/statements/providers/update_provider.ts',
    from: 'move.subtreeIds}::integer[])',
    to: '[move.id]}::integer[])',
    scene: 'trees',
  },
  {
    name: 'same_subtree is not asked for',
    file: 'src/search/combination.ts',
    from: 'depths.at(-1) === chosen.length - 1 && !isOneSubtree(chosen, depths)',
    to: 'false',
    scene: 'trees',
  },
  {
    name: 'apart_from is not obeyed',
    file: 'src/search/anchors.ts',
    from: 'not: new Set(request.apartFrom.flatMap((consumer) => [...treesOf(consumer)])),',
    to: 'not: new Set(),',
    scene: 'trees',
  },
  {
    name: 'a provider is deleted although it has allocations',
    file: 'db/statements/providers/delete_provider.ts',
    from: 'where not has_children and not is_root and not in_use and not changed',
    to: 'where not has_children and not is_root and not changed',
    more: [{ from: "if (found?.in_use) return 'in use';", to: '' }],
    scene: 'trees',
  },
  {
    name: 'the reshaper raises generations for its inventories by one',
    file: 'src/claims/judge.ts',
    from: 'bump(provider, inventories.size > 0 ? 2 : 1)',
    to: 'bump(provider, 1)',
    scene: 'classes',
  },
  {
    name: 'If-Match of a POST is not compared with what its consumers have',
    file: 'src/claims/judge.ts',
    from: 'if (expected === undefined) continue;',
    to: 'if (claim.consumers.length > 1 || expected === undefined) continue;',
  },
];
