import { inBackground, rest } from '../../db/engine/background.ts';
import type { Database } from '../../db/engine/connect.ts';
import { repeatLostRaces } from '../../db/engine/failures.ts';
import type { ConsumerWrite } from '../../db/statements/claims/claim_write.ts';
import {
  compactUsages,
  correctUsages,
  exceededLimit,
  type LimitGuard,
  limitedUsages,
  type ProjectUsage,
  readLimitedUsages,
  usageKey,
} from '../../db/statements/claims/project_usages.ts';
import type { ConsumerState } from '../../db/statements/claims/read_allocations.ts';
import { endCountingWithoutLimits } from '../../db/statements/limits.ts';
import type { Config } from '../config/config.ts';
import type { FleetKeeper } from '../fleet/keep/keeper.ts';
import type { Fleet } from '../fleet/model/fleet.ts';
import { nameOf } from '../fleet/model/names.ts';
import { type Reported, reporting } from '../log/outages.ts';
import { incompleteOwner } from '../placement/consumer.ts';
import { unknownType } from '../placement/entity_tag.ts';
import { anyType, limitInForce, type ProjectLimits } from '../placement/limits.ts';
import { type Claim, ClaimRefused, type ConsumerClaim } from './claim.ts';

/** How usages count for limits. */
export type CountingOptions = {
  /** Consumer types that do not count ([placement] uncounted_types). */
  readonly uncountedTypes: readonly string[];
  /** The project that old allocations without a consumer record count for. */
  readonly incompleteProject: string;
};

/** The options as they are configured. */
export const countingOptions = (config: Pick<Config, 'placement'>): CountingOptions => ({
  uncountedTypes: config.placement.uncountedTypes,
  incompleteProject: incompleteOwner(config).projectId,
});

/** All types count, and old allocations count for no project. */
export const allCount: CountingOptions = { uncountedTypes: [], incompleteProject: '' };

/** The amounts that a consumer has, or will have after a write. */
export type Holding = {
  /** Null for allocations without a consumer record. */
  readonly project: string | null;
  readonly consumerType: string | null;
  /** Amounts by the ids of classes; a class may come more than once. */
  readonly amounts: readonly { readonly classId: number; readonly used: number }[];
};

/** How a write changes the usages of projects. Changes that cancel out are left out. */
export function projectUsageChanges(before: readonly Holding[], after: readonly Holding[]): readonly ProjectUsage[] {
  const changes = new Map<string, ProjectUsage & { amount: number }>();
  const add = (usage: ProjectUsage): void => {
    const key = usageKey(usage);
    const known = changes.get(key);
    if (known === undefined) changes.set(key, { ...usage });
    else known.amount += usage.amount;
  };
  const addHolding = ({ project, consumerType, amounts }: Holding, sign: 1 | -1): void => {
    if (amounts.length === 0) return;
    for (const { classId, used } of amounts) add({ project, consumerType, classId, amount: sign * used });
    add({ project, consumerType, classId: null, amount: sign });
  };
  for (const holding of before) addHolding(holding, -1);
  for (const holding of after) addHolding(holding, 1);
  return [...changes.values()].filter(({ amount }) => amount !== 0);
}

/** The limits in force on usages that a write raises. */
export function limitGuards(
  { limits, classes }: Pick<Fleet, 'limits' | 'classes'>,
  usages: readonly ProjectUsage[],
  { uncountedTypes, incompleteProject }: CountingOptions,
): readonly LimitGuard[] {
  const raises = new Map<string, Omit<LimitGuard, 'limit'> & { raise: number }>();
  const add = (project: string, classId: number | null, consumerType: string | null, amount: number): void => {
    const key = usageKey({ project, classId, consumerType });
    const known = raises.get(key);
    const hasOld = project === incompleteProject;
    if (known === undefined) raises.set(key, { project, classId, consumerType, hasOld, raise: amount, ahead: 0 });
    else known.raise += amount;
  };
  for (const { project, consumerType, classId, amount } of usages) {
    const type = consumerType ?? unknownType;
    if (uncountedTypes.includes(type)) continue;
    add(project ?? incompleteProject, classId, null, amount);
    if (classId === null) add(project ?? incompleteProject, null, type, amount);
  }
  return [...raises.values()].flatMap((guard) => {
    if (guard.raise <= 0) return [];
    const { project, classId, consumerType } = guard;
    const found =
      classId === null
        ? limitInForce(limits, project, 'consumers', consumerType ?? anyType)
        : limitInForce(limits, project, 'resources', nameOf(classes, classId));
    return found === undefined ? [] : [{ ...guard, limit: found.limit }];
  });
}

/** The refusal of a write that exceeds a limit. */
export function limitExceeded(
  { classes }: Pick<Fleet, 'classes'>,
  { project, classId, consumerType, limit, raise }: LimitGuard,
  used: number,
): ClaimRefused {
  const limited =
    classId !== null
      ? `${limit} of ${nameOf(classes, classId)}`
      : `${limit} consumer${limit === 1 ? '' : 's'}${consumerType === null ? '' : ` of type ${consumerType}`}`;
  const beyond = raise > limit ? ' That is more than the limit itself.' : '';
  return new ClaimRefused(
    'limit',
    `Project '${project}' is limited to ${limited}: it has ${used}, and the request asks for ${raise} more.${beyond}`,
  );
}

/** How a judged claim changes the usages of projects. */
export function projectUsageChangesOf(
  consumers: readonly ConsumerWrite[],
  states: ReadonlyMap<string, ConsumerState>,
): readonly ProjectUsage[] {
  return projectUsageChanges(
    consumers.flatMap(({ uuid }) => holdingsOf(states.get(uuid))),
    consumers.map(({ projectExternalId, consumerType, allocations }) => ({
      project: projectExternalId,
      consumerType,
      amounts: allocations,
    })),
  );
}

const holdingsOf = (state: ConsumerState | undefined): readonly Holding[] =>
  state === undefined
    ? []
    : [{ project: state.projectId, consumerType: state.consumerType, amounts: state.allocations }];

/**
 * The limits on usages that a claim raises, wherever its consumers are placed: a consumer by query takes the amounts of one of its queries.
 */
function guardsOfQueries(
  fleet: Fleet,
  { consumers }: Claim,
  states: ReadonlyMap<string, ConsumerState>,
  options: CountingOptions,
): readonly LimitGuard[] {
  const after = consumers.map((consumer) => {
    const { uuid, projectId, consumerType } = consumer;
    const type = consumerType ?? states.get(uuid)?.consumerType ?? null;
    return { project: projectId, consumerType: type, amounts: leastAmounts(fleet, consumer) };
  });
  const before = consumers.flatMap(({ uuid }) => holdingsOf(states.get(uuid)));
  return limitGuards(fleet, projectUsageChanges(before, after), options);
}

function leastAmounts({ classes }: Fleet, { allocations, queries }: ConsumerClaim): Holding['amounts'] {
  const sums = (resources: Iterable<readonly [string, number]>): ReadonlyMap<string, number> => {
    const summed = new Map<string, number>();
    for (const [name, amount] of resources) summed.set(name, (summed.get(name) ?? 0) + amount);
    return summed;
  };
  const amountsOfQueries =
    queries === undefined
      ? [sums([...allocations.values()].flatMap((amounts) => [...amounts]))]
      : queries.map(({ request }) => sums(request.groups.flatMap(({ resources }) => [...resources])));
  const [first = new Map<string, number>(), ...others] = amountsOfQueries;
  return [...first].flatMap(([name, amount]) => {
    const resourceClass = classes.byName.get(name);
    const used = Math.min(amount, ...others.map((other) => other.get(name) ?? 0));
    // Also with an amount of 0: the consumer itself counts.
    return resourceClass === undefined ? [] : [{ classId: resourceClass.id, used }];
  });
}

/** The limits that a claim is judged by. */
export type JudgingFleet = Pick<FleetKeeper, 'known' | 'snapshot'>;

/** The refusal of a claim that exceeds a limit; undefined if the claim exceeds no limit; `changed` if limits may have changed meanwhile. */
type Exceeded = ClaimRefused | 'changed' | undefined;

/** Reads whether writes exceed limits. */
export type LimitReads = {
  /**
   * Whether a claim exceeds a limit wherever its consumers are placed.
   *
   * @param states the consumers of the claim, with their owners
   */
  ofClaim(fleet: JudgingFleet, claim: Claim, states: ReadonlyMap<string, ConsumerState>): Promise<Exceeded>;
  /**
   * For each claim: how many such claims the limits still allow, wherever their consumers are placed. All consumers of the claims must be
   * new. Undefined where that is not known: usages are in doubt, or the limits may have changed.
   */
  ofNew(fleet: JudgingFleet, claims: readonly Claim[]): Promise<readonly number[] | undefined>;
  /** Whether a claim exceeds a limit. @param usages what the claim adds to the usages */
  ofUsages(fleet: JudgingFleet, usages: readonly ProjectUsage[]): Promise<Exceeded>;
  /** Corrects usages that are in doubt. Calls that come while a correction has not begun share it. */
  correct(): Promise<void>;
};

/** How often usages are corrected for one read: another program may put the usages in doubt again. */
const mostCorrections = 5;

/** Opens the reads of a database. */
export function openLimitReads(database: Database, options: CountingOptions): LimitReads {
  let next: Promise<void> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  const correct = (): Promise<void> => {
    next ??= last.then(async () => {
      next = undefined;
      await repeatLostRaces(() => correctUsages(database));
    });
    last = next.catch(() => {});
    return next;
  };
  const firstExceeded = async (
    { known, snapshot }: JudgingFleet,
    guardsBy: (known: Fleet) => readonly LimitGuard[],
  ): Promise<Exceeded> => {
    const guards = guardsBy(known);
    const { keys, indexOf } = limitedUsages(guards);
    if (keys.length === 0) return undefined;
    const read = () => repeatLostRaces(() => readLimitedUsages(database, keys, options.uncountedTypes, snapshot));
    let used = await read();
    for (let corrections = 0; used === 'in doubt' && corrections < mostCorrections; corrections += 1) {
      await correct();
      used = await read();
    }
    if (typeof used === 'string') return 'changed';
    const exceeded = exceededLimit(guards, (guard) => used[indexOf(guard)] ?? 0);
    return exceeded && limitExceeded(known, exceeded.guard, exceeded.used);
  };
  return {
    ofClaim: async (fleet, claim, states) =>
      claim.isReshape ? undefined : firstExceeded(fleet, (known) => guardsOfQueries(known, claim, states, options)),
    ofNew: async ({ known, snapshot }, claims) => {
      const guards = claims.map((claim) => guardsOfQueries(known, claim, new Map(), options));
      const { keys, indexOf } = limitedUsages(guards.flat());
      if (keys.length === 0) return claims.map(() => Number.POSITIVE_INFINITY);
      const used = await repeatLostRaces(() => readLimitedUsages(database, keys, options.uncountedTypes, snapshot));
      if (typeof used === 'string') return undefined;
      const times = (guard: LimitGuard): number =>
        Math.max(0, Math.floor((guard.limit - (used[indexOf(guard)] ?? 0)) / guard.raise));
      return guards.map((each) => Math.min(...each.map(times)));
    },
    ofUsages: (fleet, usages) => firstExceeded(fleet, (known) => limitGuards(known, usages, options)),
    correct,
  };
}

/** The time between two searches for projects with many rows of usages. */
const compactEveryMs = 500;

/** The time between two corrections of all usages, which another program may have put out of step unnoticed. */
const correctEveryMs = 600_000;

const hasLimits = ({ projects, defaults }: ProjectLimits): boolean =>
  projects.size > 0 || defaults.resources.size > 0 || defaults.consumers.size > 0;

/** Keeps the number of rows of usages small, and corrects the usages from time to time, while usages are counted. */
export function compactFromTimeToTime(
  database: Database,
  fleet: Pick<FleetKeeper, 'known'>,
  reported: Reported,
): () => Promise<void> {
  let correctedAtMs = performance.now();
  return inBackground({
    everyMs: compactEveryMs,
    failed: reporting(reported, 'The usages of projects could not be added up; the next try is soon'),
    round: async (stopping) => {
      const { limits } = fleet.known;
      if (!limits.isCounting) return;
      if (!hasLimits(limits)) await endCountingWithoutLimits(database);
      const startedMs = performance.now();
      await compactUsages(database);
      const isDue = startedMs - correctedAtMs > correctEveryMs;
      // Reads recount usages that are in doubt, and do not store the result.
      await correctUsages(database, isDue ? 'all' : 'doubtful');
      if (isDue) correctedAtMs = startedMs;
      // With many projects a search takes longer: requests have the database for most of the time.
      await rest(10 * (performance.now() - startedMs), stopping);
    },
  });
}
