import {
  ApiError,
  type CandidateQuery,
  type Explanation,
  type Placement,
  type UnmetCondition,
  VersionError,
} from '../client/index.ts';
import type { OutputFormat, TextTable } from './table.ts';

/** An explanation as two tables: the conditions, and the nearest trees. */
export function explanationText(
  { trees, pools = 0, fitting, complete, conditions, nearest }: Explanation,
  format: OutputFormat,
): readonly (string | TextTable)[] {
  const conditionRows = conditions.map(({ parameter, value, alone, left, without, largest }) => [
    `${parameter}=${value}`,
    alone ?? undefined,
    left ?? undefined,
    without ?? undefined,
    largest ?? undefined,
  ]);
  const treeRows = nearest.flatMap(({ root, unmet }) =>
    unmet.map((condition, place) => [
      format !== 'table' || place === 0 ? root.name : undefined,
      `${condition.parameter}=${condition.value}`,
      sentenceOf(condition),
    ]),
  );
  return [
    `It fits ${fitting ?? 'an unknown number'} of ${trees} trees${pools === 0 ? '' : `, ${pools} of which only share`}. ` +
      'Numbers of trees: "alone" meet the condition, "left" also all before it, "without" all others.',
    { head: ['condition', 'alone', 'left', 'without', 'largest'], rows: conditionRows },
    ...(complete ? [] : ['The missing numbers would take too much work to find.']),
    ...(treeRows.length === 0 ? [] : ['The nearest trees:', { head: ['tree', 'unmet', 'why'], rows: treeRows }]),
  ];
}

/** Why no provider of a tree meets a condition. */
export function sentenceOf({
  reason,
  value,
  resource_provider: { name },
  asked,
  free,
  tree_free,
}: UnmetCondition): string {
  const fitsInParts = asked !== null && tree_free !== undefined && tree_free !== null && tree_free >= asked;
  const isForbidden = value.startsWith('!');
  switch (reason) {
    case 'capacity':
      return `${name} has ${free} left${fitsInParts ? `; its tree has ${tree_free} in parts: ask by groups` : ''}`;
    case 'absent':
      return 'there is none';
    case 'max_unit':
      return `${name} gives less at once (max_unit)`;
    case 'min_unit':
      return `${name} gives more at once (min_unit)`;
    case 'step_size':
      return `${name} gives multiples only (step_size)`;
    case 'trait':
      return `${name} ${isForbidden ? 'has it' : value.startsWith('in:') ? 'has none of them' : 'does not have it'}`;
    case 'aggregate':
      return `${name} ${isForbidden ? 'is in it' : value.startsWith('in:') ? 'is in none of them' : 'is not in it'}`;
    case 'tree':
      return 'it is another tree';
    default:
      return 'met, but not together with all others';
  }
}

/**
 * Why a query fits nowhere, whatever consumers are where. Undefined if the server is too old, if this user may not ask, or if it
 * fits somewhere.
 */
export async function explainedQuery(placement: Placement, query: CandidateQuery): Promise<Explanation | undefined> {
  const { apart_from: _apart, with: _with, ...asked } = query;
  try {
    const explained = await placement.candidateQuestions.explain(asked);
    return explained.fitting === 0 || explained.fitting === null ? explained : undefined;
  } catch (error) {
    if (error instanceof VersionError || (error instanceof ApiError && error.status === 403)) return undefined;
    throw error;
  }
}
