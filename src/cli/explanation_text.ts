import {
  ApiError,
  type CandidateQuery,
  type Explanation,
  type Placement,
  type UnmetCondition,
  VersionError,
} from '../client/index.ts';
import { drainedProviders, undrainHint } from './drained_providers.ts';
import type { OutputFormat, TextTable } from './table.ts';

/** An explanation as two tables: the conditions, and the nearest trees. It asks which of those without room are drained. */
export async function explanationText(
  placement: Placement,
  { trees, pools = 0, fitting, complete, conditions, nearest }: Explanation,
  format: OutputFormat,
): Promise<readonly (string | TextTable)[]> {
  const full = nearest.flatMap(({ unmet }) => unmet).filter(hasNoneLeft);
  const drained = full.length === 0 ? new Set<string>() : await drainedProviders(placement);
  const firstDrained = full.find(({ resource_provider: { uuid } }) => drained.has(uuid));
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
      sentenceOf(condition, drained),
    ]),
  );
  return [
    `It fits ${fitting ?? 'an unknown number'} of ${trees} trees${pools === 0 ? '' : `, ${pools} of which only share`}. ` +
      'Numbers of trees: "alone" meet the condition, "left" also all before it, "without" all others.',
    { head: ['condition', 'alone', 'left', 'without', 'largest'], rows: conditionRows },
    ...(complete ? [] : ['The missing numbers would take too much work to find.']),
    ...(treeRows.length === 0 ? [] : ['The nearest trees:', { head: ['tree', 'unmet', 'why'], rows: treeRows }]),
    ...(firstDrained === undefined ? [] : [undrainHint(firstDrained.resource_provider.name)]),
  ];
}

/** As in a provider of which all is reserved. Less than nothing is left where that was in use before. */
const hasNoneLeft = ({ reason, free }: UnmetCondition): boolean => reason === 'capacity' && (free ?? 0) <= 0;

/** Why no provider of a tree meets a condition. @param drained the UUIDs of providers */
function sentenceOf(condition: UnmetCondition, drained: ReadonlySet<string>): string {
  const { reason, value, asked, free, tree_free } = condition;
  const { name, uuid } = condition.resource_provider;
  if (hasNoneLeft(condition) && drained.has(uuid)) return `${name} is drained`;
  const fitsInParts = asked !== null && tree_free !== undefined && tree_free !== null && tree_free >= asked;
  const isForbidden = value.startsWith('!');
  switch (reason) {
    case 'capacity':
      if (free !== null && free < 0) return `${name} has none left: ${-free} more are in use than it may give`;
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

/** Why a query fits only where it fits, whatever consumers are where. Undefined if the service is too old, or if this user may not ask. */
export async function explainedQuery(placement: Placement, query: CandidateQuery): Promise<Explanation | undefined> {
  const { apart_from: _apart, with: _with, order: _order, ...asked } = query;
  return unlessUnknown(placement.candidateQuestions.explain(asked));
}

/** The answer to a question about candidates; undefined if the service is too old, or if this user may not ask. */
export async function unlessUnknown<Answer>(asked: Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof VersionError || (error instanceof ApiError && error.status === 403)) return undefined;
    throw error;
  }
}
