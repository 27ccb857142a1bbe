import { conditionsOf } from '../../src/api/candidates/conditions.ts';
import { parseCandidateRequest } from '../../src/api/candidates/query.ts';
import type { Claim, ConsumerClaim, PlacementQuery } from '../../src/claims/claim.ts';
import { placingOrder } from '../../src/claims/placing.ts';
import { since } from '../../src/placement/microversions.ts';
import { ApiError } from '../../src/request/errors.ts';
import { parseQuery } from '../../src/rest/query_string.ts';
import type { Random } from '../races/random.ts';
import { someOf } from '../races/random.ts';
import { aggregates, classes, consumers, type Subject, traits, type World } from './world.ts';

/** What the client knows: the providers from before the change, what the change was about, and the consumers as they are now. */
export type Known = { readonly before: World; readonly subject: Subject; readonly now: World };

/** Some consumers, most of them by query. */
export function randomClaim(random: Random, known: Known): Claim {
  for (;;) {
    const count = random.percent(60) ? 1 : 2 + random.below(2);
    const uuids = new Set(Array.from({ length: count }, () => random.pick(consumers)));
    const claimed = [...uuids].map((uuid, index) => ({
      uuid,
      knownGeneration: random.percent(30) ? undefined : (known.now.generations.get(uuid) ?? null),
      projectId: 'p',
      userId: 'u',
      consumerType: undefined,
      ...(index > 0 && random.percent(35) ? plain(random, known) : byQuery(random, known, uuids)),
    }));
    const order = placingOrder(claimed);
    if ('placing' in order && order.placing.length > 0) {
      return { consumers: claimed, inventories: [], placing: order.placing };
    }
  }
}

/** Often one of those that the change was about. */
const anyOf = (random: Random, { before, subject }: Known): string =>
  random.pick(subject.providers.length > 0 && random.percent(60) ? subject.providers : before.providers.map(uuidOf));
const uuidOf = ({ uuid }: { readonly uuid: string }): string => uuid;

function plain(random: Random, known: Known): Pick<ConsumerClaim, 'allocations'> {
  if (random.percent(20)) return { allocations: new Map() };
  return { allocations: new Map([[anyOf(random, known), new Map([[random.pick(classes), 1 + random.below(2)]])]]) };
}

function byQuery(
  random: Random,
  known: Known,
  together: ReadonlySet<string>,
): Pick<ConsumerClaim, 'allocations' | 'queries'> {
  const count = random.percent(75) ? 1 : 2;
  const queries: PlacementQuery[] = [];
  while (queries.length < count) queries.push(...parsed(queryText(random, known, together)));
  return { allocations: new Map(), queries };
}

/** None if the text is refused, as with a group that requires and forbids the same trait. */
function parsed(text: string): readonly PlacementQuery[] {
  try {
    const query = parseQuery(text);
    const request = parseCandidateRequest(query, since.placing);
    return [{ request, conditions: conditionsOf(query, request) }];
  } catch (error) {
    if (error instanceof ApiError) return [];
    throw error;
  }
}

function queryText(random: Random, known: Known, together: ReadonlySet<string>): string {
  const parts: string[] = [];
  const suffixes = random.pick([[''], [''], [''], ['_A'], ['', '_A'], ['_A', '_B'], ['', '_A', '_B']]);
  const isBare = suffixes.length > 1 && random.percent(20);
  for (const [index, suffix] of suffixes.entries()) {
    // A group without resources must be in a subtree.
    if (!(isBare && index === suffixes.length - 1)) {
      const wanted = suffix === '' ? ['VCPU', ...(random.percent(30) ? ['DISK_GB'] : [])] : [random.pick(classes)];
      parts.push(`resources${suffix}=${wanted.map((name) => `${name}:${1 + random.below(2)}`).join(',')}`);
    }
    const [trait, aggregate] = [random.pick(traits), random.pick(aggregates)];
    if (random.percent(15)) parts.push(`required${suffix}=${random.pick(['', '!', 'in:'])}${trait}`);
    if (random.percent(8)) parts.push(`member_of${suffix}=${random.pick(['', '!'])}${aggregate}`);
    if (random.percent(30)) parts.push(`in_tree${suffix}=${anyOf(random, known)}`);
  }
  if (suffixes.filter((suffix) => suffix !== '').length > 1) {
    parts.push(`group_policy=${random.pick(['none', 'isolate'])}`);
    if (isBare || random.percent(40)) parts.push('same_subtree=_A,_B');
  } else if (isBare) parts.push('same_subtree=_A');
  if (random.percent(12)) parts.push(`root_required=${random.pick(['', '!'])}${random.pick(traits)}`);
  if (random.percent(30)) {
    const keys = [`free:${random.pick(classes)}`, `-free:${random.pick(classes)}`, `prefer:${random.pick(traits)}`];
    parts.push(`order=${random.pick(keys)}`);
  }
  const named = (): string =>
    random.pick([...someOf(random, [...together]), ...known.subject.consumers, random.pick(consumers)]);
  if (random.percent(30)) parts.push(`apart_from=${named()}`);
  if (random.percent(15)) parts.push(`with=${named()}`);
  return parts.join('&');
}
