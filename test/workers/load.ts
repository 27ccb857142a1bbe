import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Client, detailOf, openClient, type Reply, succeed } from '../races/client.ts';
import { checkIntegrity, readHoldings } from '../races/consistency.ts';
import type { Query } from '../races/server_process.ts';
import { newClaim } from '../support/requests.ts';

/** Two providers that all clients claim from: one with room for all claims, and one that is soon full. */
export type Stock = { readonly roomy: string; readonly tight: string };

const tightCapacity = 12;

export async function buildStock(client: Client): Promise<Stock> {
  const stock = { roomy: randomUUID(), tight: randomUUID() };
  for (const [name, uuid] of Object.entries(stock)) {
    await succeed(client, 'POST', '/resource_providers', 20, { name, uuid });
    await succeed(client, 'PUT', `/resource_providers/${uuid}/inventories`, 20, {
      resource_provider_generation: 0,
      inventories: { VCPU: { total: name === 'tight' ? tightCapacity : 1_000_000 } },
    });
  }
  return stock;
}

/** Clients that claim, read candidates and delete, one request after the other, each on a separate connection. */
export type Load = {
  /** The consumers that must have an allocation, by the answers that the clients got. */
  readonly held: ReadonlySet<string>;
  /** How often each answer came, by method and status. */
  readonly answers: ReadonlyMap<string, number>;
  /** The codes of connections that broke. The request was repeated once, at the next address. */
  readonly broken: string[];
  /** The codes of repetitions whose connection also broke. The client then stopped. */
  readonly failed: string[];
  answered(): number;
  /** Resolves when all clients have stopped. @throws if an answer was wrong */
  stop(): Promise<void>;
};

export function startLoad(urls: readonly string[], stock: Stock, clients: number): Load {
  const held = new Set<string>();
  const answers = new Map<string, number>();
  const broken: string[] = [];
  const failed: string[] = [];
  let stopped = false;

  const client = async (index: number): Promise<void> => {
    let at = index % urls.length;
    let open = openClient(urls[at] ?? '');
    const attempt = async (...request: Parameters<Client['send']>): Promise<Reply> => {
      const reply = await open.send(...request);
      const answer = `${request[0]} ${reply.status}`;
      answers.set(answer, (answers.get(answer) ?? 0) + 1);
      return reply;
    };
    const send = async (...request: Parameters<Client['send']>): Promise<Reply & { readonly repeated: boolean }> => {
      try {
        return { ...(await attempt(...request)), repeated: false };
      } catch (error) {
        broken.push(codeOf(error));
        open.close();
        at = (at + 1) % urls.length;
        open = openClient(urls[at] ?? '');
        return { ...(await attempt(...request)), repeated: true };
      }
    };
    const step = async (turn: number): Promise<void> => {
      const consumer = randomUUID();
      const claim = newClaim({ [turn % 3 === 0 ? stock.tight : stock.roomy]: { VCPU: 1 } });
      const claimed = await send('PUT', `/allocations/${consumer}`, 39, claim);
      if (claimed.status === 204) held.add(consumer);
      else if (claimed.repeated && detailOf(claimed).includes('consumer generation conflict')) {
        // The first attempt was written before its connection broke.
        const { body } = await send('GET', `/allocations/${consumer}`, 39);
        assert.notDeepEqual(
          (body as { readonly allocations: object }).allocations,
          {},
          'a conflict although the consumer has no allocations',
        );
        held.add(consumer);
      } else assert.match(detailOf(claimed), /would exceed the capacity|Another thread concurrently updated/);
      const candidates = await send('GET', '/allocation_candidates?resources=VCPU:1&limit=5', 39);
      assert.equal(candidates.status, 200, detailOf(candidates));
      if (!held.has(consumer) || turn % 4 === 1) return;
      const deleted = await send('DELETE', `/allocations/${consumer}`, 39);
      assert.ok(deleted.status === 204 || (deleted.status === 404 && deleted.repeated), detailOf(deleted));
      held.delete(consumer);
    };
    try {
      for (let turn = index; !stopped; turn += 1) await step(turn);
    } catch (error) {
      if (!isBroken(error)) throw error;
      failed.push(codeOf(error));
    } finally {
      open.close();
    }
  };
  const running = Promise.all(Array.from({ length: clients }, (_, index) => client(index)));
  running.catch(() => {}); // stop() reports the error
  return {
    held,
    answers,
    broken,
    failed,
    answered: () => [...answers.values()].reduce((sum, count) => sum + count, 0),
    stop: async () => {
      stopped = true;
      await running;
    },
  };
}

/** Checks the database against the answers of the clients, after they have stopped. */
export async function checkLoad(query: Query, { held }: Load, stock: Stock): Promise<void> {
  await checkIntegrity(query);
  const holdings = await readHoldings(query);
  assert.deepEqual([...holdings.keys()].sort(), [...held].sort(), 'the consumers with an allocation');
  const ofTight = [...holdings.values()].filter(({ amounts }) => amounts.has(`${stock.tight} VCPU`)).length;
  assert.ok(ofTight <= tightCapacity, `${ofTight} of ${tightCapacity} are taken`);
}

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : String(error);

const isBroken = (error: unknown): boolean => ['ECONNREFUSED', 'ECONNRESET', 'EPIPE'].includes(codeOf(error));
