import * as v from 'valibot';
import type { Fleet } from '../../fleet/model/fleet.ts';
import type { Provider } from '../../fleet/model/provider.ts';
import { since } from '../../placement/microversions.ts';
import { bySince, type Version } from '../../placement/versions.ts';
import { badRequest, noSuchProvider, notFound, tryLater } from '../../request/errors.ts';
import { inPiecesOfOneSnapshot, mostWorkMs } from '../../request/turns.ts';
import type { Answer, ApiRequest, Endpoint } from '../../rest/endpoint.ts';
import { uuidText } from '../../rest/json_schema.ts';
import { exactNumber } from '../../rest/python_numbers.ts';
import { type Query, queryOf } from '../../rest/query_string.ts';
import { checkUnrepeated, integerParameter } from '../../rest/schema_check.ts';
import { type Condition, requestWith } from '../../search/conditions.ts';
import { countPlacements } from '../../search/count/count.ts';
import type { ConditionFigures, Explanation } from '../../search/explanation/explain.ts';
import type { Unmet } from '../../search/explanation/nearest.ts';
import type { CandidateRequest } from '../../search/request.ts';
import { requireKnownNames, resolveOrder } from '../../search/resolve.ts';
import type { Dependencies } from '../dependencies.ts';
import { findInAnySpelling } from '../resource_providers/provider.ts';
import { conditionsOf } from './conditions.ts';
import { parseCandidateRequest, type QueryParameters, queryParameters } from './query.ts';

/*
 * The questions about a query for allocation candidates: why it fits where it fits and nowhere
 * else, and how many consumers with this query can be claimed.
 */

// Routes

export const candidateQuestionEndpoints: readonly Endpoint<Dependencies>[] = [
  {
    method: 'GET',
    path: '/allocation_candidates/explanation',
    since: since.explanation,
    policy: 'placement:allocation_candidates:explanation',
    answersJson: true,
    takesParameters: true,
    handle: showExplanation,
  },
  {
    method: 'GET',
    path: '/allocation_candidates/count',
    since: since.explanation,
    policy: 'placement:allocation_candidates:count',
    answersJson: true,
    takesParameters: true,
    handle: showCount,
  },
];

// Request schemas

/** The parameters of a query that name consumers. */
const ofConsumers = ['with', 'apart_from'];

/** The parameters of a question about a query: the parameters of the question (`entries`), and these together with the query. */
const question = <Entries extends v.ObjectEntries>(entries: Entries) => ({
  entries,
  parameters: queryParameters(['limit', ...ofConsumers], Object.keys(entries)),
});
/** @param nearest how many of the trees that do not fit may be requested */
const explanationOf = (nearest: number) =>
  question({ nearest: v.optional(integerParameter(0, nearest)), tree: v.optional(uuidText) });
/** @param top how many of the trees in which most fit may be requested */
const countOf = (top: number) =>
  question({ max: v.optional(integerParameter(1, 1_000_000)), top: v.optional(integerParameter(0, top)) });
const explanations = [
  { since: since.names, schema: explanationOf(1_000) },
  { since: since.explanation, schema: explanationOf(100) },
] as const;
const counts = [
  { since: since.names, schema: countOf(10_000) },
  { since: since.explanation, schema: countOf(100) },
] as const;

// The defaults of these parameters.
const usualNearest = 5;
const usualMax = 100_000;
const usualTop = 10;

// Handlers

/** Imported by the first question: few services get such requests, and the import would make every start longer. */
const explanationParts = () => import('../../search/explanation/explain.ts');

/** @throws ApiError 503 if no file could be opened; otherwise the error itself, since the loader has the reason in its text only */
function refuseWithoutFiles(error: unknown): never {
  if (!/too many open files|file table overflow/.test(String(error))) throw error;
  throw tryLater('Too many files are open to read the code of explanations.');
}

async function showExplanation(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const { options, wanted, conditions } = readQuestion(request, bySince(explanations, request.version));
  const { explain } = await explanationParts().catch(refuseWithoutFiles);
  const current = await fleet.fresh();
  checkNames(current, wanted, conditions);
  const tree = options.tree === undefined ? undefined : rootOf(current, options.tree);
  const turns = request.turns();
  const work = explain(current, conditions, { nearest: options.nearest ?? usualNearest, tree, turns });
  const explanation = await inPiecesOfOneSnapshot(work, fleet.hold, turns, tooWide);
  return { status: 200, json: explanationJson(explanation, request.version), lastModified: new Date() };
}

async function showCount(request: ApiRequest, { fleet }: Dependencies): Promise<Answer> {
  const { options, wanted, conditions } = readQuestion(request, bySince(counts, request.version));
  const current = await fleet.fresh();
  checkNames(current, wanted, conditions);
  const { max = usualMax, top = usualTop } = options;
  const turns = request.turns();
  const work = countPlacements(current, requestWith(conditions), { max, top, turns });
  const { count, exact, trees } = await inPiecesOfOneSnapshot(work, fleet.hold, turns, tooWide);
  const shown = trees.map(({ root, count }) => ({ ...shownProvider(root), count }));
  return { status: 200, json: { count, exact, trees: shown }, lastModified: new Date() };
}

/** Reads the query of a question, and the parameters of the question. @throws ApiError 400 naming the parameter and the value */
function readQuestion<Entries extends v.ObjectEntries>(
  request: ApiRequest,
  { entries, parameters }: { readonly entries: Entries; readonly parameters: QueryParameters },
) {
  const query = request.query();
  const limit = query.last('limit');
  if (limit !== undefined) {
    throw badRequest(
      `Invalid query string parameters: 'limit' was unexpected, since all trees are asked about. Got: ${limit}`,
    );
  }
  const options = checkUnrepeated(query, v.looseObject(entries));
  const candidateQuery: Query = queryOf(query.entries.filter(([name]) => !Object.hasOwn(entries, name)));
  for (const name of ofConsumers) {
    const value = request.version >= since.placing ? candidateQuery.last(name) : undefined;
    if (value === undefined) continue;
    throw badRequest(
      `Invalid query string parameters: '${name}' was unexpected, since trees are asked about whatever consumers hold. Got: ${value}`,
    );
  }
  const wanted = parseCandidateRequest(candidateQuery, request.version, parameters);
  const conditions = conditionsOf(candidateQuery, wanted);
  if (conditions.length > mostConditions) {
    throw badRequest(
      `Invalid query string parameters: a query may have ${mostConditions} conditions where it is asked about: amounts of resources, and ` +
        `values of required, member_of, in_tree, root_required, group_policy and same_subtree. Got: ${conditions.length}`,
    );
  }
  return { options, wanted, conditions };
}

/** The search tries each condition by itself, with the conditions before it, and leaves each one out. */
const mostConditions = 200;

const tooWide = () =>
  badRequest(`The question was stopped after ${mostWorkMs / 1000} s of work. Ask about a query with fewer conditions.`);

/** @throws ApiError 400 for a class or a trait that does not exist */
function checkNames(fleet: Fleet, { order }: CandidateRequest, conditions: readonly Condition[]): void {
  resolveOrder(fleet, order); // it changes no answer
  requireKnownNames(fleet, conditions);
}

/** The root of the tree that a provider belongs to. @throws ApiError 404 where there is no such provider */
function rootOf(fleet: Fleet, sent: string): Provider {
  const provider = findInAnySpelling(fleet, sent);
  if (provider === undefined) throw notFound(`${noSuchProvider(sent)}, which the parameter 'tree' names.`);
  return provider.root;
}

// Response shapes

const explanationJson = (
  { trees, pools, fitting, complete, conditions, nearest }: Explanation,
  version: Version,
): object => ({
  trees,
  ...(version >= since.teams ? { pools } : {}),
  fitting: fitting ?? null,
  complete,
  conditions: conditions.map(figuresJson),
  nearest: nearest.map(({ root, unmet }) => ({
    root: shownProvider(root),
    unmet: unmet.map((each) => unmetJson(each, version)),
  })),
});

const figuresJson = ({ condition, alone, left, without, largest }: ConditionFigures): object => ({
  parameter: condition.parameter,
  value: condition.value,
  alone: alone ?? null,
  left: left ?? null,
  without: without ?? null,
  ...(condition.kind === 'resource' ? { largest: largest ?? null } : {}),
});

const unmetJson = ({ condition, provider, asked, free, treeFree, reason }: Unmet, version: Version): object => ({
  parameter: condition.parameter,
  value: condition.value,
  resource_provider: shownProvider(provider),
  asked: asked === undefined ? null : exactNumber(asked),
  free: free === undefined ? null : exactNumber(free),
  ...(version >= since.teams ? { tree_free: treeFree === undefined ? null : exactNumber(treeFree) } : {}),
  reason,
});

const shownProvider = ({ uuid, name }: Provider): object => ({ uuid, name });
