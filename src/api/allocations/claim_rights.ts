import type { Claim, ClaimRights, ConsumerClaim, UncountedRights } from '../../claims/claim.ts';
import { placingOrder } from '../../claims/placing.ts';
import type { Config } from '../../config/config.ts';
import { incompleteOwner, type Owner } from '../../placement/consumer.ts';
import { since } from '../../placement/microversions.ts';
import { withName } from '../../placement/uuid.ts';
import { type Version, versionText } from '../../placement/versions.ts';
import { ApiError, badRequest, withHint } from '../../request/errors.ts';
import type { AllowsOwner, ApiRequest } from '../../rest/endpoint.ts';

/** How many consumers of one POST may be by query. */
const mostPlaced = 500;

/** The rule of claims by query; while no policy file has it, the rules of other claims and of candidates apply. */
const placeRule = 'placement:allocations:place';
const candidatesRule = 'placement:allocation_candidates:list';

/** The rule of empty allocations, which name no provider and do what DELETE does, where the rule of the write allows no owner. */
const deleteRule = 'placement:allocations:delete';

/** The decision of the policy about a request to write allocations, before its body is read. */
export type ClaimRules = {
  /** The rule of claims that name their providers. */
  readonly rule: string;
  /**
   * Undefined where `rule` allows no owner, so that only a claim by query may be allowed. `owners` are the allowed owners: undefined for
   * all.
   */
  readonly named: { readonly owners: AllowsOwner | undefined } | undefined;
  /** Whether a policy file has the rule of claims by query. */
  readonly isPlaceWritten: boolean;
};

/** @throws ApiError 403 where the policy allows the request with no body */
export function claimRules(request: ApiRequest, rule: string): ClaimRules {
  const isPlaceWritten = request.version >= since.placing && request.isRuleWritten(placeRule);
  try {
    return { rule, isPlaceWritten, named: { owners: request.allowedOwners(rule) } };
  } catch (error) {
    if (!isPlaceWritten) throw error;
    request.allowedOwners(placeRule);
    return { rule, isPlaceWritten, named: undefined };
  }
}

/**
 * The rights that the policy grants to the client of a claim; undefined where they do not depend on the owners of consumers. Each rule that
 * a consumer of the claim needs must allow the owners of all of them.
 *
 * @throws ApiError 403 if the claim sets an owner whose consumers the client may not write
 */
function rightsOf(
  consumers: readonly ConsumerClaim[],
  request: ApiRequest,
  { rule, named, isPlaceWritten }: ClaimRules,
): Pick<ClaimRights, 'allows' | 'rule'> | undefined {
  const isRelease = ({ queries, allocations }: ConsumerClaim): boolean =>
    named === undefined && request.version >= since.names && queries === undefined && allocations.size === 0;
  const isNamed = !isPlaceWritten || consumers.some((each) => each.queries === undefined && !isRelease(each));
  if (isNamed && named === undefined) {
    throw request.forbidden(rule, `A claim that names its providers needs it; one by 'candidates' needs ${placeRule}.`);
  }
  const ofQueries = isPlaceWritten ? placeRule : candidatesRule;
  const placing = consumers.some(({ queries }) => queries !== undefined) ? ofQueries : undefined;
  const releasing = consumers.some(isRelease) ? deleteRule : undefined;
  const byName = isNamed ? named?.owners : undefined;
  const byQuery = placing === undefined ? undefined : request.allowedOwners(placing);
  const byRelease = releasing === undefined ? undefined : request.allowedOwners(releasing);
  const rules = [byName, byQuery, byRelease].filter((allowed) => allowed !== undefined);
  if (rules.length === 0) return undefined;
  const allows = (owner: Owner): boolean => rules.every((allowed) => allowed(owner));
  const deciding = placing ?? releasing ?? rule;
  const other = consumers.find((consumer) => !allows(consumer));
  if (other !== undefined) {
    const { uuid, name, projectId, userId } = other;
    throw request.forbidden(
      deciding,
      `Consumer ${withName(uuid, name)} is to be of project ${projectId} and user ${userId}.`,
    );
  }
  return { allows, rule: deciding };
}

const uncountedRule = 'placement:allocations:uncounted';

/**
 * Requires the rule for consumer types that do not count for limits, if the claim sets such a type.
 *
 * @throws ApiError 403
 */
export function requireUncounted(
  { consumerType, ...owner }: Owner & { readonly consumerType?: string | null | undefined },
  request: Pick<ApiRequest, 'allowedOwners' | 'forbidden'>,
  uncountedTypes: readonly string[],
): void {
  if (consumerType === undefined || consumerType === null || !uncountedTypes.includes(consumerType)) return;
  if (request.allowedOwners(uncountedRule)?.(owner) === false) throw request.forbidden(uncountedRule);
}

/** Whose consumers may keep a type that does not count for limits; undefined where all may. */
function uncountedRights(
  request: Pick<ApiRequest, 'allowedOwners'>,
  types: readonly string[],
): UncountedRights | undefined {
  if (types.length === 0) return undefined;
  try {
    const allows = request.allowedOwners(uncountedRule);
    return allows && { types, allows, rule: uncountedRule };
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 403)) throw error;
    return { types, allows: () => false, rule: uncountedRule };
  }
}

/**
 * The claim of some consumers.
 *
 * @throws ApiError 403 where the client may not make this claim, and 400 for too many queries
 */
export function claimOf(
  consumers: readonly ConsumerClaim[],
  request: ApiRequest,
  rules: ClaimRules,
  config: Config,
): Claim {
  const { uncountedTypes } = config.placement;
  const count = consumers.filter(({ queries }) => queries !== undefined).length;
  for (const consumer of consumers) requireUncounted(consumer, request, uncountedTypes);
  const uncounted = uncountedRights(request, uncountedTypes);
  const ofOwners = rightsOf(consumers, request, rules);
  const rights: ClaimRights | undefined =
    ofOwners === undefined && uncounted === undefined
      ? undefined
      : {
          ...(ofOwners ?? { allows: () => true, rule: rules.rule }),
          ...(uncounted && { uncounted }),
          incompleteOwner: incompleteOwner(config),
        };
  if (count === 0) return { consumers, inventories: [], rights };
  if (count > mostPlaced) {
    throw badRequest(`The body has 'candidates' for ${count} consumers, and may have it for ${mostPlaced}.`);
  }
  const order = placingOrder(consumers);
  if ('circle' in order) {
    const [first = ''] = order.circle;
    throw badRequest(
      `Each of the consumers ${order.circle.join(', ')} names the next one in 'with' of its 'candidates', and the last one names ` +
        `${first}: none of them can be placed first.`,
    );
  }
  return { consumers, inventories: [], placing: order.placing, rights };
}

/** The fields of claims that OpenStack does not have, with the versions that introduced them, the newest first. */
const newerFields: readonly (readonly [name: string, since: Version])[] = [
  ['name', since.names],
  ['line', since.waiting],
  ['expires_in', since.terms],
  ['candidates', since.placing],
  ['dry_run', since.placing],
];

/**
 * Adds to a refusal that the body has a field of a newer version than the request. For a body without such a field the refusal stays as it
 * is.
 *
 * @returns the error to throw
 */
export function namingNewerFields(request: Pick<ApiRequest, 'version'>, refusal: unknown, body: unknown): unknown {
  if (!(refusal instanceof ApiError) || typeof body !== 'object' || body === null) return refusal;
  const parts = [body, ...Object.values(body)].filter((part) => typeof part === 'object' && part !== null);
  const found = newerFields.find(
    ([name, first]) => first > request.version && parts.some((part) => Object.hasOwn(part, name)),
  );
  if (found === undefined) return refusal;
  const [name, first] = found;
  const hint = `'${name}' needs microversion ${versionText(first)}; this request is for ${versionText(request.version)}.`;
  return withHint(refusal, hint, { inMessage: true });
}
