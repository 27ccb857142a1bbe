import { unlessUnknown } from '../client/errors.ts';
import { type CandidateCount, type CandidateQuery, isNoCandidates, type Placement } from '../client/index.ts';
import { counted } from '../text/strings.ts';
import { explainedQuery, explanationText } from './explanation_text.ts';
import { drawnAll, type TextTable } from './table.ts';

/** Consumers that are placed together, all or none, each by the same query. */
export type GangSize = { readonly count?: number | undefined; readonly apart?: true | undefined };

/** The largest number of trees that the service returns below 2.9, and the number that is shown. */
const mostCounted = 100;
const mostShown = 10;

/** A refusal because nothing fits, with the reasons; undefined for any other error, or if the reasons cannot be found out. */
export async function asUnplaceable(
  placement: Placement,
  query: CandidateQuery,
  { count = 1, apart }: GangSize,
  error: unknown,
): Promise<Error | undefined> {
  if (!isNoCandidates(error)) return undefined;
  if (count > 1) return gangRefusal(placement, query, { count, apart }, error);
  const explanation = await explainedQuery(placement, query);
  if (explanation === undefined || explanation.fitting) return undefined;
  const why = await explanationText(placement, explanation, 'table');
  return new Error(`${error.message}\n${drawnAll(why)}`, { cause: error });
}

/** The service names only the first consumer of a gang that it found no place for. */
async function gangRefusal(
  placement: Placement,
  query: CandidateQuery,
  { count, apart }: { readonly count: number; readonly apart: true | undefined },
  error: Error,
): Promise<Error | undefined> {
  const [found, explanation] = await Promise.all([counts(placement, query), explainedQuery(placement, query)]);
  if (found === undefined || explanation === undefined) return undefined;
  const others = query.with !== undefined || query.apart_from !== undefined;
  const fitting = apart ? found.trees.length : found.count;
  const atLeast = apart ? found.trees.length >= mostCounted : !found.exact;
  const head = `The ${count} consumers do not fit together${apart ? ', each on another host' : ''}. Nothing was placed.`;
  const about = atLeast ? 'At least ' : '';
  const room = apart
    ? `${about}${counted(fitting, 'host')} ${fitting === 1 ? 'has' : 'have'} room for one of them`
    : `There is room for ${about.toLowerCase()}${Math.min(fitting, count)} of them`;
  const limits = others ? ', without regard to --with and --apart-from' : '';
  const hosts: TextTable = {
    head: ['host', 'uuid', 'takes'],
    rows: found.trees.slice(0, mostShown).map(({ name, uuid, count: takes }) => [name, uuid, takes]),
    orElse: '',
  };
  const more = found.trees.length > mostShown ? [`and ${found.trees.length - mostShown} hosts more.`] : [];
  const why = await explanationText(placement, explanation, 'table');
  const parts = [head, `${room}${limits}.`, hosts, ...more, 'One of them alone:', ...why];
  return new Error(drawnAll(parts), { cause: error });
}

/** How many consumers fit in addition to the present ones, and how many each host takes. */
function counts(placement: Placement, query: CandidateQuery): Promise<CandidateCount | undefined> {
  const { apart_from: _apart, with: _with, order: _order, ...asked } = query;
  return unlessUnknown(placement.candidateQuestions.count({ ...asked, top: mostCounted }));
}
