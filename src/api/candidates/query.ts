import * as v from 'valibot';
import { since } from '../../placement/microversions.ts';
import { isUuidLike, normalUuid } from '../../placement/uuid.ts';
import { bySince, type Since } from '../../placement/versions.ts';
import { badRequest, errorCodes } from '../../request/errors.ts';
import { keyed, object, oneOf, text } from '../../rest/json_schema.ts';
import {
  onlyValue,
  parseInTree,
  parseMemberOf,
  parseRequired,
  parseResources,
  parseTraits,
  type Query,
  refuseRepeats,
} from '../../rest/query_string.ts';
import { checkQuery } from '../../rest/schema_check.ts';
import type { CandidateRequest, OrderKey, RequestGroup } from '../../search/request.ts';
import { strip } from '../../text/strings.ts';

const string = v.optional(text());
const limit = v.optional(text({ pattern: /^[1-9][0-9]*$/ }));

/** Up to 1.24 there is one request group, and no parameter has a suffix. */
const plain = [
  {
    since: since.candidateAggregates,
    schema: object({ resources: text(), limit, required: string, member_of: string }),
  },
  { since: since.candidateTraits, schema: object({ resources: text(), limit, required: string }) },
  { since: since.candidateLimit, schema: object({ resources: text(), limit }) },
  { since: since.allocationCandidates, schema: object({ resources: text() }) },
];

/** From 1.25 on the parameters of a request group may have a suffix. */
const numberSuffix = '([1-9][0-9]*)?';
const nameSuffix = '([a-zA-Z0-9_-]{1,64})?';
const grouped = ['member_of', 'required', 'resources'];
const suffixed = [
  {
    since: since.placing,
    names: ['in_tree', ...grouped],
    suffix: nameSuffix,
    wide: ['root_required', 'same_subtree', 'order', 'apart_from', 'with'],
  },
  {
    since: since.sameSubtree,
    names: ['in_tree', ...grouped],
    suffix: nameSuffix,
    wide: ['root_required', 'same_subtree'],
  },
  { since: since.rootRequired, names: ['in_tree', ...grouped], suffix: nameSuffix, wide: ['root_required'] },
  { since: since.namedGroups, names: ['in_tree', ...grouped], suffix: nameSuffix, wide: [] },
  { since: since.candidateTree, names: ['in_tree', ...grouped], suffix: numberSuffix, wide: [] },
  { since: since.numberedGroups, names: grouped, suffix: numberSuffix, wide: [] },
];

/** The parameters of each version. An error about an unknown parameter lists them. */
export type QueryParameters = readonly Since<v.GenericSchema>[];

/** The parameters of GET /allocation_candidates, without some parameters and with additional ones. */
export const queryParameters = (without: readonly string[] = [], also: readonly string[] = []): QueryParameters => [
  ...suffixed.map(({ names, suffix, wide, ...brought }) => ({
    ...brought,
    schema: keyed(
      [
        ...names.map((name) => new RegExp(`^${name}${suffix}$`)),
        ...['limit', 'group_policy', ...wide, ...also]
          .filter((name) => !without.includes(name))
          .map((name) => new RegExp(`^${name}$`)),
      ],
      text(),
    ),
  })),
  ...plain,
];

const ofCandidates = queryParameters();

const requestWide = v.looseObject({ limit, group_policy: v.optional(oneOf(['none', 'isolate'])) });

/**
 * Reads the query of GET /allocation_candidates.
 *
 * @param parameters the allowed parameters, if they differ from GET /allocation_candidates
 * @throws ApiError 400 naming the parameter and the mistake
 */
export function parseCandidateRequest(
  query: Query,
  version: number,
  parameters: QueryParameters = ofCandidates,
): CandidateRequest {
  checkQuery(query, bySince(parameters, version));
  checkQuery(query, requestWide);
  refuseRepeats(query, version);
  const [limitText] = query.all('limit');
  if (limitText !== undefined && !/^[1-9][0-9]*$/.test(limitText)) {
    throw badRequest(`Invalid query string parameters: '${limitText}' does not match '^[1-9][0-9]*$'`);
  }
  const [groupPolicy] = query.all('group_policy');
  const rootTraits = parseRootRequired(query);
  const sameSubtrees = parseSameSubtrees(query);
  const ofTrees = { order: parseOrder(query), ...parseApartFromAndWith(query) };
  const groups = parseGroups(query, version);
  checkGroups(groups, sameSubtrees, version);
  if (groupPolicy === undefined && groups.filter(({ suffix }) => suffix !== '').length > 1) {
    throw badRequest(
      'The "group_policy" parameter is required when specifying more than one "resources{N}" parameter.',
    );
  }
  return {
    groups,
    limit: limitText === undefined ? undefined : Number(limitText),
    isolate: groupPolicy === 'isolate',
    rootTraits,
    sameSubtrees,
    nested: version >= since.nestedCandidates,
    ...ofTrees,
  };
}

function parseGroups(query: Query, version: number): readonly RequestGroup[] {
  const suffix = version >= since.namedGroups ? nameSuffix : numberSuffix;
  const pattern = new RegExp(`^(resources|required|member_of|in_tree)${suffix}$`);
  const suffixes = new Set<string>();
  for (const [name] of query.entries) {
    const match = pattern.exec(name);
    if (match !== null) suffixes.add(match[2] ?? '');
  }
  return [...suffixes].map((suffix) => {
    // Each value of a repeated parameter is checked; the last one counts.
    const parameter = `resources${suffix}`;
    const resources = query
      .all(parameter)
      .map((value) => parseResources(value, version, parameter))
      .at(-1);
    return {
      suffix,
      resources: resources ?? new Map(),
      traits: parseRequired(query, suffix, version),
      aggregates: parseMemberOf(query, suffix, version),
      inTree: query
        .all(`in_tree${suffix}`)
        .map((value) => parseInTree(value, `in_tree${suffix}`, version))
        .at(-1),
    };
  });
}

function parseRootRequired(query: Query): CandidateRequest['rootTraits'] {
  const value = onlyValue(query, 'root_required');
  if (value === undefined) return { required: [], forbidden: [] };
  const { required: anyOfs, forbidden } = parseTraits(value, {
    allowForbidden: true,
    allowAny: false,
    parameter: 'root_required',
  });
  const required = [...new Set(anyOfs.flat())];
  const unwanted = new Set(forbidden);
  const conflicts = required.filter((name) => unwanted.has(name));
  if (conflicts.length > 0) {
    throw badRequest(
      `Conflicting required and forbidden traits found in root_required: ${conflicts.join(', ')}`,
      errorCodes.badQueryValue,
    );
  }
  return { required, forbidden };
}

function parseSameSubtrees(query: Query): readonly ReadonlySet<string>[] {
  return query.all('same_subtree').map((value) => {
    const suffixes = new Set(value.split(',').map(strip));
    if (suffixes.has('')) {
      throw badRequest(
        'Empty string (unsuffixed group) can not be specified in `same_subtree` ',
        errorCodes.badQueryValue,
      );
    }
    return suffixes;
  });
}

function checkGroups(
  groups: readonly RequestGroup[],
  sameSubtrees: readonly ReadonlySet<string>[],
  version: number,
): void {
  if (version >= since.sameSubtree) checkResourceless(groups, sameSubtrees);
  else checkOrphans(groups);
  if (version < since.forbiddenTraits) return;
  const conflicts = groups.flatMap(({ suffix, traits }) => {
    const unwanted = new Set(traits.forbidden);
    return traits.required
      .filter((anyOf) => anyOf.every((name) => unwanted.has(name)))
      .map((anyOf) => `required${suffix}: (${[...anyOf].sort().join(', ')})`);
  });
  if (conflicts.length > 0) {
    throw badRequest(
      `Conflicting required and forbidden traits found in the following traits keys: ${conflicts.sort().join(', ')}`,
    );
  }
}

/** From 1.36 on a group may have no resources if `same_subtree` names it. */
function checkResourceless(groups: readonly RequestGroup[], sameSubtrees: readonly ReadonlySet<string>[]): void {
  const resourceless = groups.filter(({ resources }) => resources.size === 0).map(({ suffix }) => suffix);
  if (resourceless.length === groups.length) {
    throw badRequest('There must be at least one resources or resources[$S] parameter.', errorCodes.missingQueryValue);
  }
  const named = new Set(sameSubtrees.flatMap((suffixes) => [...suffixes]));
  const known = new Set(groups.map(({ suffix }) => suffix));
  const unnamed = resourceless.filter((suffix) => !named.has(suffix));
  if (unnamed.length > 0) {
    throw badRequest(
      'Resourceless suffixed group request should be specified in `same_subtree` query param: bad group(s) - ' +
        `${listed(unnamed)}.`,
      errorCodes.badQueryValue,
    );
  }
  const unknown = [...named].filter((suffix) => !known.has(suffix));
  if (unknown.length > 0) {
    throw badRequest(
      `Real suffixes should be specified in \`same_subtree\`: ${listed(unknown)} not found in ${listed([...known])}.`,
      errorCodes.badQueryValue,
    );
  }
}

const listed = (names: readonly string[]): string => `[${names.map((name) => `'${name}'`).join(', ')}]`;

/** Before 1.36 every group must have resources. */
function checkOrphans(groups: readonly RequestGroup[]): void {
  const without = groups.filter(({ resources }) => resources.size === 0);
  const traits = without.filter((group) => group.traits.required.length > 0);
  if (traits.length > 0) {
    throw badRequest(
      'All traits parameters must be associated with resources.  Found the following orphaned traits keys: ' +
        traits.map(({ suffix }) => `required${suffix}`).join(', '),
    );
  }
  const members = without.filter(({ aggregates }) => aggregates.required.length > 0 || aggregates.forbidden.length > 0);
  if (members.length > 0) {
    throw badRequest(
      'All member_of parameters must be associated with resources. Found the following orphaned member_of keys: ' +
        members.map(({ suffix }) => `member_of${suffix}`).join(', '),
    );
  }
  if (without.length > 0) throw badRequest('All request groups must specify resources.');
  if (groups.length === 0) {
    throw badRequest('At least one request group (`resources` or `resources{$S}`) is required.');
  }
}

/*
 * The parameters of GET /allocation_candidates that choose among trees: `order`, `apart_from` and `with`, from
 * microversion 2.4 on.
 */

/** No client needs an order of more keys, and each key is compared for every tree. */
const mostKeys = 8;

/** The keys of `order=free:VCPU,prefer:HW_X,random`. @throws ApiError 400 naming the parameter and the key */
function parseOrder(query: Query): readonly OrderKey[] {
  const value = onlyValue(query, 'order');
  if (value === undefined) return [];
  const keys = value.split(',').map(strip);
  if (keys.length > mostKeys) {
    throw badValue('order', `at most ${mostKeys} keys`, `${keys.length} keys in: ${value}`);
  }
  return keys.map((key): OrderKey => {
    if (key === 'random') return { kind: 'random' };
    const [, kind, name = ''] = /^(-?free|prefer):(.+)$/.exec(key) ?? [];
    if (kind === undefined) {
      const got = key === '' ? `an empty key in: ${value}` : key;
      throw badValue('order', 'keys of the forms free:VCPU, -free:VCPU, prefer:HW_CPU_X86_VMX and random', got);
    }
    if (kind === 'prefer') return { kind, traitName: name };
    return { kind: 'free', className: name, mostFirst: kind === '-free' };
  });
}

/** @throws ApiError 400 naming the parameter and the UUID */
function parseApartFromAndWith(query: Query): Pick<CandidateRequest, 'apartFrom' | 'with'> {
  const apartFrom = parseConsumers(query, 'apart_from');
  const together = parseConsumers(query, 'with');
  const unwanted = new Set(apartFrom.map(normalUuid));
  if (together.length > 0 && together.every((uuid) => unwanted.has(normalUuid(uuid)))) {
    throw badRequest(
      `Invalid query string parameters: 'apart_from' excludes every consumer that 'with' names: ${together.join(',')}`,
      errorCodes.badQueryValue,
    );
  }
  return { apartFrom, with: together };
}

function parseConsumers(query: Query, name: string): readonly string[] {
  const value = onlyValue(query, name);
  if (value === undefined) return [];
  const uuids = value.split(',').map(strip);
  const wrong = uuids.find((uuid) => !isUuidLike(uuid));
  if (wrong === undefined) return [...new Set(uuids)];
  throw badValue(name, 'UUIDs of consumers', wrong === '' ? `an empty UUID in: ${value}` : wrong);
}

const badValue = (name: string, expected: string, got: string) =>
  badRequest(
    `Invalid query string parameters: Expected '${name}' parameter to have ${expected}. Got ${got}`,
    errorCodes.badQueryValue,
  );
