import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Arena, partsOf } from '../races/arena.ts';
import { type Client, detailOf } from '../races/client.ts';

/** The outcome of the claims of a contest. */
export type Outcome = {
  /** How many claims of each client succeeded. */
  readonly won: readonly number[];
  /** How many claims of each client were refused, because no room was left. */
  readonly refused: readonly number[];
  /** The allocations of consumers whose claim succeeded and was not deleted. */
  readonly held: ReadonlyMap<
    string,
    { readonly provider: string; readonly resourceClass: string; readonly used: number }
  >;
};

type Holding = { readonly provider: string; readonly resourceClass: string; readonly used: number };

/**
 * In each turn several writers for each client claim from one slot at the same time, each for a different consumer, and
 * some delete their allocations again. In the end everything is full.
 */
export async function contend(clients: readonly Client[], arena: Arena): Promise<Outcome> {
  const slots = [...arena.capacities.keys()];
  const won = clients.map(() => 0);
  const refused = clients.map(() => 0);
  const held = new Map<string, Holding>();
  const claim = async (client: Client, index: number, turn: number, writer: number): Promise<void> => {
    const consumer = randomUUID();
    const [provider, resourceClass] = partsOf(slots[turn % slots.length] ?? '');
    const used = 1 + ((turn + writer) % 3);
    const reply = await client.send('PUT', `/allocations/${consumer}`, 38, {
      allocations: { [provider]: { resources: { [resourceClass]: used } } },
      project_id: 'contest',
      user_id: `side-${index}`,
      consumer_generation: null,
      consumer_type: 'INSTANCE',
    });
    if (reply.status !== 204) {
      assert.equal(reply.status, 409, detailOf(reply));
      // A client should repeat a claim that lost too many races. Here the next claim is made instead.
      if (!detailOf(reply).includes('concurrent_update')) refused[index] = (refused[index] ?? 0) + 1;
      return;
    }
    won[index] = (won[index] ?? 0) + 1;
    held.set(consumer, { provider, resourceClass, used });
    if ((turn + writer) % 4 > 0) return;
    const removal = await client.send('DELETE', `/allocations/${consumer}`, 38);
    assert.equal(removal.status, 204, detailOf(removal));
    held.delete(consumer);
  };
  for (let turn = 0; turn < 60; turn += 1) {
    await Promise.all(
      clients.flatMap((client, index) => [0, 1, 2, 3].map((writer) => claim(client, index, turn, writer))),
    );
  }
  return { won, refused, held };
}
