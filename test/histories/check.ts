import { isDeepStrictEqual } from 'node:util';
import { versionText } from '../../src/placement/versions.ts';
import type { Action } from './action.ts';
import { withoutConsumer } from './consumer_generations.ts';
import type { Operation } from './history.ts';
import { linearize, type Order } from './linearize.ts';
import type { Life } from './live.ts';
import { type ConsumerState, keyOf, type ProviderState, type State, sortedJson, usagesOf } from './state.ts';
import { afterRemovals, anyTime, type EffectTime } from './terms.ts';
import { rootOf } from './trees.ts';

/**
 * What is wrong with a history. Without an order that explains it, the kind is that of the request at which the search ends: `stale`
 * at a read, also where the write before it was lost; `over-allocated` at an acknowledged claim; `lost` at any other write.
 */
export type Finding = {
  readonly kind: 'lost' | 'over-allocated' | 'stale' | 'not reported' | 'wrong root';
  /** The request, the answer and the expectation. */
  readonly text: string;
};

/** What the checker knows of the machine. */
export type Circumstances = {
  /** The time for the removal of a consumer whose term has ended. */
  readonly patienceMs: number;
  /** Whether the clock of the database agreed with that of the clients; otherwise terms may end at any time. */
  readonly isClockSteady: boolean;
  /** The search for an order stops after this number of states. */
  readonly mostStates?: number;
};

/** The service removes a consumer within two seconds; a machine with other work may take longer. */
const usual: Circumstances = { patienceMs: 30_000, isClockSteady: true };

/**
 * Looks for an order that explains all answers of a history, and whether all changes of this order were reported.
 *
 * @returns what is wrong; `undecided` if the search was stopped
 */
export function check(
  { arena, history, reported }: Life,
  circumstances: Circumstances = usual,
): Finding | 'undecided' | undefined {
  const operations = history.operations.filter(
    ({ completed, action }) => completed !== undefined || action.method !== 'GET',
  );
  const specification = {
    initial: arena.initial,
    keyOf,
    after: (state: State, operation: Operation<Action>, until: number) =>
      stepsFrom(state, operation, circumstances, until).map(({ after }) => after),
  };
  const verdict = linearize<State, Operation<Action>>(specification, operations, circumstances.mostStates);
  if (verdict.isExplained === undefined) return 'undecided';
  if (verdict.isExplained) return unreported(arena.initial, verdict.order, operations, reported, circumstances);
  const { stuck, state } = verdict;
  const since = Math.min(...stuck.map(({ invoked }) => invoked));
  const until = Math.max(...stuck.map(({ completed }) => completed ?? 0));
  const near = history.operations.filter(({ invoked, completed = until }) => invoked <= until && completed >= since);
  const text =
    `${stuck.map(described).join('\n')}\nin none of the states that may be, such as\n${sortedJson(state)}\n` +
    `At the same time:\n${near.map(described).join('\n')}`;
  const isRead = stuck.some(({ action }) => action.method === 'GET');
  const isTooMuch = stuck.some(
    ({ action, reply }) => action.path.startsWith('/allocations') && (reply?.status ?? 0) < 300,
  );
  return { kind: isRead ? 'stale' : isTooMuch ? 'over-allocated' : 'lost', text };
}

/** Ways in which a request may have had its effect: the state before it, after removals, and the state after it. */
function stepsFrom(
  state: State,
  { action, reply, invoked, completed = Number.POSITIVE_INFINITY }: Operation<Action>,
  { patienceMs, isClockSteady }: Circumstances,
  until = completed,
): readonly { readonly before: State; readonly after: State }[] {
  const effectTime: EffectTime = isClockSteady ? { since: invoked, until, completed } : anyTime;
  const found: { readonly before: State; readonly after: State }[] = [];
  for (const before of afterRemovals(state, effectTime, patienceMs)) {
    for (const after of action.after(before, reply, effectTime)) {
      // A removal that may also follow the request is not tried before it.
      if (!found.some((way) => isDeepStrictEqual(withoutMore(way.after, way.before, before), after))) {
        found.push({ before, after });
      }
    }
  }
  return found;
}

/** A state without the consumers that were removed between two other states. */
const withoutMore = (state: State, more: State, less: State): State =>
  Object.keys(more.consumers)
    .filter((uuid) => less.consumers[uuid] === undefined)
    .reduce((rest, uuid) => withoutConsumer(rest, uuid), state);

const described = ({ client, action, invoked, completed, reply }: Operation<Action>): string =>
  `client ${client}, ${invoked} to ${completed}: ${action.method} ${action.path} at ${versionText(action.microversion)}` +
  `${action.ifMatch === undefined ? '' : `, If-Match ${action.ifMatch.slice(0, 16)}`} ${sortedJson(action.body) ?? ''}` +
  `\n  answered ${reply?.status} ${sortedJson(reply?.body) ?? ''} ${reply?.etag?.slice(0, 16) ?? ''}`;

const isMove = ({ method, body }: Action): boolean =>
  method === 'PUT' && typeof body === 'object' && body !== null && 'parent_provider_uuid' in body;

/** A part of a provider that exists. */
const part =
  <Part>(of: (provider: ProviderState, state: State, uuid: string) => Part) =>
  (state: State, uuid: string): Part | undefined => {
    const provider = state.providers[uuid];
    return provider && of(provider, state, uuid);
  };

/** The parts of a provider that GET /changes tells of, and what they are. */
const parts = {
  provider: part(({ name, parent }, state, uuid) => ({ name, parent, root: rootOf(state, uuid) })),
  inventories: part(({ inventories }) => inventories),
  traits: part(({ traits }) => traits.toSorted()),
  aggregates: part(({ aggregates }) => aggregates.toSorted()),
  usages: part((_, { consumers }, uuid) => usagesOf(consumers)[uuid] ?? {}),
} as const;

/** What of a consumer GET /changes tells of. */
const shownOf = ({ consumers }: State, uuid: string) => {
  const consumer = consumers[uuid];
  if (consumer === undefined) return undefined;
  const { project, user, type, name, allocations } = consumer;
  return { project, user, type, name, allocations };
};

/** Another name of a class is no change of the consumers that have it. */
const isRename = ({ method, path }: Action): boolean => method === 'PUT' && path.startsWith('/resource_classes/');

/**
 * A change that was answered must be in an answer of `GET /changes` that ended after the request of the change was
 * sent. A removal must be in one after the end of the term.
 */
function unreported(
  initial: State,
  order: Order<State, Operation<Action>>,
  operations: readonly Operation<Action>[],
  reported: Life['reported'],
  circumstances: Circumstances,
): Finding | undefined {
  const { since } = reported;
  if (since === undefined) return undefined;
  /** Whether a request without an answer may have removed a consumer earlier than the order says. */
  const mayBeGoneEarlier = (consumer: string): boolean =>
    operations.some(
      ({ completed, action: { path, body } }) =>
        completed === undefined && `${path} ${JSON.stringify(body)}`.includes(consumer),
    );
  /** When a consumer may have been removed already: at the end of its term, or by a request without an answer. */
  const lossesOf = (uuid: string, { term }: ConsumerState): readonly number[] => {
    if (mayBeGoneEarlier(uuid)) return [Number.NEGATIVE_INFINITY];
    if (term === undefined) return [];
    // By a clock that jumps, an end says nothing about when the removal was.
    return [circumstances.isClockSteady ? term.earliest : Number.NEGATIVE_INFINITY];
  };
  /**
   * When consumers whose allocations of a provider a request changes may have lost them already: at the end of a term, or by a request
   * without an answer. The order need not say so, since the state after the request is the same.
   */
  const lossesBefore = (from: State, to: State, provider: string): readonly number[] =>
    Object.entries(from.consumers)
      .filter(
        ([uuid, { allocations }]) =>
          !isDeepStrictEqual(allocations[provider], to.consumers[uuid]?.allocations[provider]),
      )
      .flatMap(([uuid, consumer]) => lossesOf(uuid, consumer));
  /**
   * When a provider may have got its present place in a tree: a move to it that is under way at the same time, or has no answer, may
   * have been done first, although the order has another one first.
   */
  const movesBeside = ({ invoked, completed = 0 }: Operation<Action>): readonly number[] =>
    operations
      .filter(({ action }) => isMove(action))
      .flatMap((each) => {
        if (each.completed === undefined) return [Number.NEGATIVE_INFINITY];
        return each.completed >= invoked && each.invoked <= completed ? [each.invoked] : [];
      });
  let present = initial;
  for (const { step: operation, state } of order) {
    const seen = present;
    present = state;
    if (operation.completed === undefined) continue;
    const key = keyOf(state);
    const before = stepsFrom(seen, operation, circumstances).find(({ after }) => keyOf(after) === key)?.before;
    for (const [from, to, changedMs, what] of [
      [seen, before ?? seen, Number.POSITIVE_INFINITY, 'a removal that is seen by'],
      [before ?? seen, state, operation.invoked, ''],
    ] as const) {
      if (from === to) continue;
      for (const uuid of isRename(operation.action) ? [] : Object.keys({ ...from.consumers, ...to.consumers })) {
        if (isDeepStrictEqual(shownOf(from, uuid), shownOf(to, uuid))) continue;
        const former = from.consumers[uuid];
        const sinceMs = Math.min(changedMs, ...(former === undefined ? [] : lossesOf(uuid, former)));
        const { since: followedSince = Number.POSITIVE_INFINITY, changes } = reported.consumers;
        const ofConsumer = changes.filter((each) => each.uuid === uuid).map(({ completed }) => completed);
        if (sinceMs < followedSince || ofConsumer.some((completed) => completed > sinceMs)) continue;
        const text =
          `consumer ${uuid}, changed after ${sinceMs}, after ${what} ${described(operation)}\n` +
          `It was reported at ${ofConsumer.join(', ') || 'no time'}; the client follows since ${followedSince}.`;
        return { kind: 'not reported', text };
      }
      for (const uuid of Object.keys({ ...from.providers, ...to.providers })) {
        for (const [part, of] of Object.entries(parts)) {
          if (isDeepStrictEqual(of(from, uuid), of(to, uuid))) continue;
          const ofPart = reported.changes.filter(
            (each) => each.uuid === uuid && (each.parts.includes(part) || each.parts.includes('deleted')),
          );
          const earlier =
            part === 'usages' ? lossesBefore(from, to, uuid) : part === 'provider' ? movesBeside(operation) : [];
          const sinceMs = Math.min(changedMs, ...earlier);
          if (sinceMs < since || ofPart.some(({ completed }) => completed > sinceMs)) continue;
          const times = ofPart.map(({ completed }) => completed).join(', ');
          const text =
            `the ${part} of ${uuid}, changed after ${sinceMs}, after ${what} ${described(operation)}\n` +
            `It was reported at ${times || 'no time'}; the client follows since ${since}.`;
          return { kind: 'not reported', text };
        }
      }
    }
  }
  return undefined;
}
