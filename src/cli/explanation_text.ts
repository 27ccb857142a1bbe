import { unlessUnknown } from '../client/errors.ts';
import type { CandidateQuery, Explanation, Placement } from '../client/index.ts';
import { drainedProviders, undrainHint } from './drain_marks.ts';
import type { OutputFormat, TextTable } from './table.ts';
import { hasNoneLeft, sentenceOf } from './unmet_sentence.ts';

/** An explanation as two tables: the conditions, and the nearest trees. Drained trees among those without room are marked. */
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
    unmet.map((condition, index) => [
      format !== 'table' || index === 0 ? root.name : undefined,
      `${condition.parameter}=${condition.value}`,
      sentenceOf(condition, drained),
    ]),
  );
  return [
    `It fits ${fitting ?? 'an unknown number'} of ${trees} trees (hosts)${pools === 0 ? '' : `, ${pools} of which only share`}.`,
    '"alone": hosts that meet this condition; "left": hosts that meet it and all conditions above it;',
    '"without": hosts that would fit if this condition were dropped.',
    { head: ['condition', 'alone', 'left', 'without', 'largest'], rows: conditionRows },
    ...(complete ? [] : ['The missing numbers would take too much work to find.']),
    ...(treeRows.length === 0 ? [] : ['The nearest trees:', { head: ['tree', 'unmet', 'why'], rows: treeRows }]),
    ...(firstDrained === undefined ? [] : [undrainHint(firstDrained.resource_provider.name)]),
  ];
}

/** The explanation of a query without `with` and `apart_from`. Undefined if the service is too old, or if this user may not read it. */
export async function explainedQuery(placement: Placement, query: CandidateQuery): Promise<Explanation | undefined> {
  const { apart_from: _apart, with: _with, order: _order, ...asked } = query;
  return unlessUnknown(placement.candidateQuestions.explain(asked));
}
