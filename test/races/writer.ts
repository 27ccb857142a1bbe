import assert from 'node:assert/strict';
import { type Amounts, type Arena, classes, slotOf } from './arena.ts';
import { type Client, detailOf, type Reply } from './client.ts';
import { canHaveBeenFull, type Ledger } from './ledger.ts';
import { type Random, randomUuid } from './random.ts';
import { deleteRequest, postRequest, putRequest, type Wish, type WriteRequest } from './requests.ts';
import type { SharedConsumers } from './shared_consumers.ts';

export type Race = {
  readonly arena: Arena;
  readonly ledger: Ledger;
  readonly shared: SharedConsumers;
  /** How often each answer came, by status and kind. */
  readonly answers: Map<string, number>;
};

/** The most that each consumer that all clients share may have in each slot of VCPU. Of the other class it has none. */
const mostShared = 3;

const putVersions = [7, 11, 27, 28, 34, 38, 39] as const;
const postVersions = [13, 27, 28, 34, 38] as const;
const guardedVersions = [28, 34, 38] as const;

/** One client with some consumers that only it writes. It waits for each answer before the next request. */
export type Writer = {
  /** Makes a random request. @throws if its answer cannot be right */
  step(client: Client): Promise<void>;
};

export function openWriter(race: Race, random: Random): Writer {
  const { arena, ledger, shared } = race;
  const own = Array.from({ length: 5 }, () => randomUuid(random));

  const amount = (): Amounts => {
    const wanted = new Map<string, number>();
    const count = random.percent(30) ? 2 : 1;
    for (let i = 0; i < count; i++) {
      const provider = random.pick(arena.providers);
      for (const resourceClass of random.percent(40) ? classes : [random.pick(classes)]) {
        wanted.set(slotOf(provider, resourceClass), 1 + random.below(6));
      }
    }
    return wanted;
  };
  const wish = (uuid: string, wanted: Amounts): Wish => ({
    uuid,
    wanted,
    generation: ledger.holdingOf(uuid).generation,
  });
  const two = (): [string, string] => {
    const first = random.below(own.length);
    const second = (first + 1 + random.below(own.length - 1)) % own.length;
    return [own[first] ?? '', own[second] ?? ''];
  };

  const choices: readonly (() => WriteRequest)[] = [
    () => putRequest(random.pick(putVersions), wish(random.pick(own), amount())),
    () => putRequest(random.pick(putVersions), wish(random.pick(own), amount())),
    () => {
      const [first, second] = two();
      return postRequest(random.pick(postVersions), [wish(first, amount()), wish(second, amount())]);
    },
    () => {
      // A move: the allocations of one consumer go to another one. The first one has none afterwards.
      const [from, to] = two();
      const moved = ledger.holdingOf(from).amounts;
      return postRequest(random.pick(postVersions), [
        wish(from, new Map()),
        wish(to, moved.size > 0 ? moved : amount()),
      ]);
    },
    () => {
      // The same allocations again, or one unit more of each.
      const uuid = random.pick(own);
      const { amounts } = ledger.holdingOf(uuid);
      const more = random.below(2);
      const wanted = new Map([...amounts].map(([slot, used]) => [slot, used + more]));
      return putRequest(random.pick(putVersions), wish(uuid, wanted.size > 0 ? wanted : amount()));
    },
    () => deleteRequest(random.pick(putVersions), random.pick(own)),
    () => putRequest(random.pick(guardedVersions), wish(random.pick(own), new Map())),
  ];

  const count = (reply: Reply, kind: string): void => {
    const answer = `${reply.status} ${kind}`.trim();
    race.answers.set(answer, (race.answers.get(answer) ?? 0) + 1);
  };

  const writeOwn = async (client: Client): Promise<void> => {
    const request = random.pick(choices)();
    const { method, path, minor, body } = request;
    const message = `${method} ${path} at 1.${minor} with ${JSON.stringify(body)}`;
    const pending = ledger.begin(request);
    let reply: Reply;
    try {
      reply = await client.send(method, path, minor, body);
    } catch (error) {
      ledger.end(pending, undefined);
      throw error;
    }
    ledger.end(pending, reply.status === 204);
    const kind = kindOf(reply);
    count(reply, kind);
    if (reply.status === 204) {
      const isNothing = method === 'DELETE' && pending.before.every(({ amounts }) => amounts.size === 0);
      assert.ok(!isNothing, `${message}: 204, but there was nothing to delete`);
    } else if (reply.status === 404) {
      const [before] = pending.before;
      assert.ok(method === 'DELETE' && before?.amounts.size === 0, `${message}: 404, but it had allocations`);
    } else if (kind === 'no room') {
      const slack = (slot: string) =>
        slot.endsWith(' VCPU') ? mostShared * (shared.open.length + shared.guarded.length) : 0;
      assert.ok(canHaveBeenFull(pending, arena, slack), `${message}: refused, but there was room all the time`);
    } else {
      assert.equal(`${reply.status} ${kind}`, '409 lost races', `${message}: ${detailOf(reply)}`);
    }
  };

  /** Only one slot of one class: see `mostShared`. */
  const sharedAmount = (): Amounts =>
    new Map([[slotOf(random.pick(arena.providers), 'VCPU'), 1 + random.below(mostShared)]]);

  const knownGeneration = async (client: Client, uuid: string): Promise<number | null> => {
    const { body } = await client.send('GET', `/allocations/${uuid}`, 28);
    return (body as { consumer_generation?: number }).consumer_generation ?? null; // the shape of the API
  };

  const writeShared = async (client: Client): Promise<void> => {
    const isGuarded = random.percent(50);
    const uuid = random.pick(isGuarded ? shared.guarded : shared.open);
    const generation = await knownGeneration(client, uuid);
    const choice = isGuarded ? 0 : random.below(4);
    const request =
      choice === 0
        ? putRequest(random.pick(guardedVersions), { uuid, wanted: sharedAmount(), generation })
        : choice === 1
          ? putRequest(27, { uuid, wanted: sharedAmount(), generation })
          : choice === 2
            ? putRequest(random.pick(guardedVersions), { uuid, wanted: new Map(), generation })
            : deleteRequest(28, uuid);
    const began = shared.now();
    const reply = await client.send(request.method, request.path, request.minor, request.body);
    count(reply, kindOf(reply));
    const [wish] = request.wishes;
    if (reply.status === 204) shared.written(uuid, { began, generation, amounts: wish?.wanted ?? new Map() });
    else {
      const expected = request.method === 'DELETE' ? ['404'] : ['409 no room', '409 lost races', '409 generation'];
      assert.ok(expected.includes(`${reply.status} ${kindOf(reply)}`.trim()), `${request.method}: ${detailOf(reply)}`);
    }
  };

  return {
    step: (client) => (shared.open.length > 0 && random.percent(15) ? writeShared(client) : writeOwn(client)),
  };
}

/** The kind of conflict in an answer. */
function kindOf(reply: Reply): string {
  if (reply.status !== 409) return '';
  const detail = detailOf(reply);
  if (detail.includes('would exceed the capacity')) return 'no room';
  if (detail.includes('consumer generation conflict')) return 'generation';
  if (detail.includes('Another thread concurrently updated')) return 'lost races';
  return 'other';
}
