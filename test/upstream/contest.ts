import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Arena, partsOf } from '../races/arena.ts';
import { type Client, detailOf } from '../races/client.ts';

/** What became of the claims of a contest. */
export type Outcome = {
  /** How many each client won. */
  readonly won: readonly number[];
  /** How many each client was refused, because nothing was left. */
  readonly refused: readonly number[];
  /** What the consumers have that won and gave nothing back. */
  readonly held: ReadonlyMap<
    string,
    { readonly provider: string; readonly resourceClass: string; readonly used: number }
  >;
};

type Holding = { readonly provider: string; readonly resourceClass: string; readonly used: number };

/**
 * In each turn several writers for each client claim from one slot at once, each for a consumer of its own, and some give back
 * what they got: in the end everything is full.
 */
export async function contend(clients: readonly Client[], arena: Arena): Promise<Outcome> {
  const slots = [...arena.capacities.keys()];
  const won = clients.map(() => 0);
  const refused = clients.map(() => 0);
  const held = new Map<string, Holding>();
  const claim = async (client: Client, place: number, turn: number, writer: number): Promise<void> => {
    const consumer = randomUUID();
    const [provider, resourceClass] = partsOf(slots[turn % slots.length] ?? '');
    const used = 1 + ((turn + writer) % 3);
    const reply = await client.send('PUT', `/allocations/${consumer}`, 38, {
      allocations: { [provider]: { resources: { [resourceClass]: used } } },
      project_id: 'contest',
      user_id: `side-${place}`,
      consumer_generation: null,
      consumer_type: 'INSTANCE',
    });
    if (reply.status !== 204) {
      assert.equal(reply.status, 409, detailOf(reply));
      // A claim that lost too many races is for its client to repeat; here the next one takes its turn.
      if (!detailOf(reply).includes('concurrent_update')) refused[place] = (refused[place] ?? 0) + 1;
      return;
    }
    won[place] = (won[place] ?? 0) + 1;
    held.set(consumer, { provider, resourceClass, used });
    if ((turn + writer) % 4 > 0) return;
    const removal = await client.send('DELETE', `/allocations/${consumer}`, 38);
    assert.equal(removal.status, 204, detailOf(removal));
    held.delete(consumer);
  };
  for (let turn = 0; turn < 60; turn += 1) {
    await Promise.all(
      clients.flatMap((client, place) => [0, 1, 2, 3].map((writer) => claim(client, place, turn, writer))),
    );
  }
  return { won, refused, held };
}
