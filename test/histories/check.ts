import { isDeepStrictEqual } from 'node:util';
import type { Action } from './action.ts';
import type { Operation } from './history.ts';
import { linearize } from './linearize.ts';
import type { Life } from './live.ts';
import { type State, sortedJson } from './state.ts';

/** What is wrong with a history: `lost` writes, room that was given twice, answers of no present, changes not told. */
export type Finding = {
  readonly kind: 'lost' | 'over-allocated' | 'stale' | 'not told';
  /** What was asked, answered and expected. */
  readonly text: string;
};

/**
 * Looks for an order that explains all answers of a history, and whether all changes of this order were told.
 *
 * @returns what is wrong; `undecided` if the search was given up
 */
export function check({ arena, history, told }: Life): Finding | 'undecided' | undefined {
  const operations = history.operations.filter(
    ({ completed, action }) => completed !== undefined || action.method !== 'GET',
  );
  const specification = {
    initial: arena.initial,
    keyOf: sortedJson,
    after: (state: State, { action, reply }: Operation<Action>) => action.after(state, reply),
  };
  const verdict = linearize(specification, operations);
  if (verdict.isExplained === undefined) return 'undecided';
  if (verdict.isExplained) return untold(arena.initial, verdict.order, told);
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

const described = ({ client, action, invoked, completed, reply }: Operation<Action>): string =>
  `client ${client}, ${invoked} to ${completed}: ${action.method} ${action.path} at 1.${action.minor}` +
  `${action.ifMatch === undefined ? '' : `, If-Match ${action.ifMatch.slice(0, 16)}`} ${sortedJson(action.body) ?? ''}` +
  `\n  answered ${reply?.status} ${sortedJson(reply?.body) ?? ''} ${reply?.etag?.slice(0, 16) ?? ''}`;

/** The parts of a provider that GET /changes tells of, and what they are. */
const parts = {
  provider: (state: State, uuid: string) => state.providers[uuid]?.name,
  inventories: (state: State, uuid: string) => state.providers[uuid]?.inventories,
  traits: (state: State, uuid: string) => state.providers[uuid]?.traits.toSorted(),
  aggregates: (state: State, uuid: string) => state.providers[uuid]?.aggregates.toSorted(),
  usages: (state: State, uuid: string) => {
    const used: Record<string, number> = {};
    for (const { allocations } of Object.values(state.consumers)) {
      for (const [name, amount] of Object.entries(allocations[uuid] ?? {})) used[name] = (used[name] ?? 0) + amount;
    }
    return used;
  },
} as const;

/** A change that was answered must be told by an answer that ended after the request of the change was sent. */
function untold(initial: State, order: readonly Operation<Action>[], told: Life['told']): Finding | undefined {
  const { since } = told;
  if (since === undefined) return undefined;
  let state = initial;
  for (const operation of order) {
    const before = state;
    state = operation.action.after(before, operation.reply)[0] ?? before;
    if (operation.completed === undefined || operation.invoked < since || state === before) continue;
    for (const uuid of Object.keys(state.providers)) {
      for (const [part, of] of Object.entries(parts)) {
        if (isDeepStrictEqual(of(before, uuid), of(state, uuid))) continue;
        const isTold = told.changes.some(
          (each) => each.uuid === uuid && each.parts.includes(part) && each.completed > operation.invoked,
        );
        if (!isTold) return { kind: 'not told', text: `the ${part} of ${uuid} after ${described(operation)}` };
      }
    }
  }
  return undefined;
}
