import { setTimeout as sleep } from 'node:timers/promises';
import type { Random } from '../races/random.ts';
import { succeedsWithin } from '../support/until.ts';
import type { Action } from './action.ts';
import type { Arena } from './arena.ts';
import { awaitEnd } from './await_ends.ts';
import type { Connection } from './connection.ts';
import { type Follower, startFollower } from './follower.ts';
import { type History, openHistory } from './history.ts';
import { deleteLimits } from './limit_actions.ts';
import { noNotes, takeNotes } from './notes.ts';
import { randomRequests, readAll } from './random_action.ts';
import { serves } from './serves.ts';

/** What happened in an arena. */
export type Life = {
  readonly arena: Arena;
  readonly history: History<Action>;
  readonly reported: Follower['reported'];
  /** How long after the end of its term each consumer that a client waited for was seen to be removed. */
  readonly removedAfterMs: readonly number[];
};

/** How much happens: so many requests of each client, with random pauses of so many milliseconds on average. */
export type Work = {
  readonly clients: number;
  readonly steps: number;
  readonly pauseMs?: number;
  /** How long clients wait, after the work, for the removal of the consumers whose terms end soon. */
  readonly patienceMs?: number;
};

/** Many requests in a short time. */
export const dense: Work = { clients: 6, steps: 25 };
/** So few that the search for an order stays short, also where an answer says little about the state. */
export const small: Work = { clients: 4, steps: 15 };
/** So few that terms end meanwhile. */
export const paced: Work = { clients: 4, steps: 15, pauseMs: 60, patienceMs: 30_000 };

/**
 * Lets clients work in an arena at the same time, each request to any of the servers. Then all of it is read by each
 * server, so that what was lost shows.
 *
 * @param beside what happens to the servers meanwhile; its argument tells whether the clients have done their work. Clients without an
 *   answer then wait until the server serves
 */
export async function live(
  arena: Arena,
  servers: readonly Connection[],
  random: Random,
  { clients, steps, pauseMs = 0, patienceMs = 0 }: Work,
  beside?: (isOver: () => boolean) => Promise<void>,
): Promise<Life> {
  const history = openHistory<Action>();
  const notes = noNotes();
  const follower = await startFollower(arena, history, servers, random.fork());
  const work = async (client: number): Promise<void> => {
    const choice = random.fork();
    const next = randomRequests(arena, notes, choice);
    for (let step = 0; step < steps; ) {
      if (pauseMs > 0) await sleep(choice.below(2 * pauseMs));
      const first = choice.pick(servers);
      const others = servers.filter((server) => server !== first);
      const second = others.length > 0 ? choice.pick(others) : first;
      const requests = next();
      for (const [index, make] of requests.entries()) {
        const action = make();
        const server = index === 0 || index === requests.length - 1 ? first : second;
        const reply = await history.record(client, action, () => server.send(action));
        step += 1;
        if (reply !== undefined) takeNotes(notes, action, reply);
        // The request may still be done, and is one more order to try for each step that follows.
        else if (history.operations.filter(({ completed }) => completed === undefined).length > mostUnknown) return;
        else if (beside !== undefined) await succeedsWithin(mostAwayMs, () => serves(server));
      }
    }
  };
  let isOver = false;
  const working = Array.from({ length: clients }, (_, client) => work(client));
  const worked = Promise.all(working).finally(() => {
    isOver = true;
  });
  await Promise.all([worked, beside?.(() => isOver)]);
  const removedAfterMs: number[] = [];
  const awaitEnds = async (uuid: string, index: number): Promise<void> => {
    const send = (action: Action) =>
      history.record(clients + 1 + index, action, () => random.pick(servers).send(action));
    const delayMs = await awaitEnd(uuid, random.fork(), send, patienceMs);
    if (delayMs !== undefined) removedAfterMs.push(delayMs);
  };
  if (patienceMs > 0) await Promise.all(arena.consumers.map(awaitEnds));
  for (const server of servers) {
    for (const action of readAll(arena)) {
      const isAnswered = await succeedsWithin(mostAwayMs, async () => {
        return (await history.record(clients, action, () => server.send(action))) !== undefined;
      });
      // Each other read would wait as long.
      if (!isAnswered) break;
    }
  }
  await follower.end();
  await forgetLimits(arena, servers);
  return { arena, history, reported: follower.reported, removedAfterMs };
}

/** Deletes the limits of an arena, so that the next one begins where no project has any: its first limit is the first of the service. */
async function forgetLimits({ scene, projects }: Arena, [server]: readonly Connection[]): Promise<void> {
  if (scene !== 'limits' || server === undefined) return;
  for (const project of projects) await server.send(deleteLimits(project));
}

/** How long a server may be unavailable. */
const mostAwayMs = 300_000;

/** So many requests without an answer end the work in an arena. */
const mostUnknown = 6;
