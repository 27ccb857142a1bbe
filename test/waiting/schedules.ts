import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Random, randomUuid } from '../races/random.ts';
import type { Query } from '../races/server_process.ts';
import { at } from '../support/requests.ts';
import type { Reply, WaitingClient } from './client.ts';

/*
 * Random schedules of claims that wait, and of what makes room for them. Each schedule has a host and a project of its own, so that many of
 * them run at the same time. Afterwards it is checked in which order the claims were written, which a trigger of the database notes.
 */

/** What a schedule works with. */
export type Pool = {
  /** The processes that serve the database. */
  readonly clients: readonly WaitingClient[];
  readonly query: Query;
};

/** What was found wrong. */
export type Finding = {
  readonly kind: 'lost wake-up' | 'order' | 'line' | 'gang' | 'placed for nobody' | 'answer';
  readonly text: string;
};

/** Notes each new consumer, in the order in which they are written. */
export const noteWrites: readonly string[] = [
  `create table written (id bigserial primary key, uuid text not null, xid text not null default pg_current_xact_id()::text,
    at timestamptz not null default clock_timestamp())`,
  'create index on written (uuid)',
  `create function note_written() returns trigger language plpgsql as $$begin
    insert into written (uuid) values (new.uuid); return null; end$$`,
  'create trigger note_written after insert on consumers for each row execute function note_written()',
];

/**
 * How often the server is asked whether a claim that fits still waits: on an idle machine for 20 s, of which the claim needs some milliseconds.
 * Each look has statements of its own, so that a busy machine, where both take longer, gives the claim longer.
 */
const mostLooks = 200;
const waitSeconds = 120;
const trait = 'HW_CPU_X86_AVX';

type Tracked = {
  readonly uuids: readonly string[];
  readonly amounts: readonly number[];
  readonly query: string;
  readonly line: string | undefined;
  readonly side: number;
  readonly gone: AbortController;
  /** When it was seen to wait, by `performance.now()`. */
  seenAtMs: number | undefined;
  /** Its number in its line. */
  number: number | undefined;
  readonly sentAtMs: number;
  /** When its client left, and then when its process must have noticed it, in milliseconds since 1970. */
  leftAtMs: number | undefined;
  isRemoved: boolean;
  reply: Reply | 'cut' | undefined;
};

/** @returns what is wrong; undefined where all was right, and how long the slowest claim that fitted was left waiting */
export async function liveSchedule(
  { clients, query }: Pool,
  random: Random,
): Promise<{ readonly found: Finding | undefined; readonly slowestMs: number }> {
  const host = randomUuid(random);
  const project = `project-${randomUuid(random).slice(0, 8)}`;
  const units = 2 + random.below(3);
  const hasLimit = random.percent(15);
  const hasTrait = random.percent(20);
  const tracked: Tracked[] = [];
  const anyClient = (): WaitingClient => random.pick(clients);
  let total = units;

  const succeed = async (sent: Promise<Reply>): Promise<Reply> => {
    const reply = await sent;
    if (reply.status >= 300) throw new Error(`${reply.status} ${JSON.stringify(reply.body)}`);
    return reply;
  };
  /** Writes a part of the host, again where another write came first. */
  const writePart = async (part: string, body: object): Promise<void> => {
    for (;;) {
      const { body: shown } = await succeed(anyClient().send('GET', `/resource_providers/${host}`));
      const generation = at(shown, 'generation');
      const whole = { ...body, resource_provider_generation: generation };
      const { status, body: answer } = await anyClient().send('PUT', `/resource_providers/${host}/${part}`, {
        body: whole,
      });
      if (status < 300) return;
      if (status !== 409) throw new Error(`${part}: ${status} ${JSON.stringify(answer)}`);
    }
  };
  const stock = (): Promise<void> => writePart('inventories', { inventories: { PGPU: { total } } });
  const setLimit = async (limit: number | undefined): Promise<void> => {
    for (;;) {
      const { body: shown } = await succeed(anyClient().send('GET', `/limits/${project}`));
      const body = { resources: limit === undefined ? {} : { PGPU: limit }, generation: at(shown, 'generation') };
      const { status } = await anyClient().send('PUT', `/limits/${project}`, { body });
      if (status < 300) return;
    }
  };

  const rowsOf = async (claims: readonly Tracked[]) => {
    const names = claims.flatMap(({ uuids }) => uuids.map((uuid) => `'${uuid}'`)).join();
    if (names === '') return [];
    return query(`select number, consumers[1] as first, process from waiting
      where consumers && array[${names}] and left_at is null and not is_removed`);
  };
  const arrive = async (): Promise<void> => {
    const isGang = random.percent(15);
    const uuids = Array.from({ length: isGang ? 2 : 1 }, () => randomUuid(random)).sort();
    const amounts = uuids.map(() => 1 + random.below(isGang ? 2 : units));
    const isWithTrait = hasTrait && random.percent(50);
    const text = (amount: number) =>
      `resources=PGPU:${amount}&in_tree=${host}${isWithTrait ? `&required=${trait}` : ''}`;
    const line = random.percent(40) ? random.pick(['a', 'b']) : undefined;
    const term = random.percent(10) ? { expires_in: 1 } : {};
    const body = (amount: number) => ({
      candidates: text(amount),
      project_id: project,
      user_id: 'ada',
      consumer_type: 'JOB',
      consumer_generation: null,
      ...term,
    });
    const bodies = uuids.map((uuid, index) => [uuid, body(amounts[index] ?? 1)] as const);
    const side = random.below(clients.length);
    const claim: Tracked = {
      uuids,
      amounts,
      query: amounts.map(text).join(),
      line,
      side,
      gone: new AbortController(),
      seenAtMs: undefined,
      number: undefined,
      sentAtMs: performance.now(),
      leftAtMs: undefined,
      isRemoved: false,
      reply: undefined,
    };
    tracked.push(claim);
    const ofLine = line === undefined ? {} : { line };
    const [[uuid = '', only] = []] = bodies;
    const options = { wait: waitSeconds, signal: claim.gone.signal };
    const sent = isGang
      ? clients[side]?.send('POST', '/allocations', { body: { ...Object.fromEntries(bodies), ...ofLine }, ...options })
      : clients[side]?.send('PUT', `/allocations/${uuid}`, { body: { ...only, ...ofLine }, ...options });
    void sent?.then(
      (reply) => {
        claim.reply = reply;
      },
      () => {
        claim.reply = 'cut';
      },
    );
    if (random.percent(30)) return;
    for (let look = 0; look < 100 && claim.reply === undefined && claim.seenAtMs === undefined; look += 1) {
      await sleep(20);
      await see([claim]);
    }
  };
  const see = async (claims: readonly Tracked[]): Promise<void> => {
    const unseen = claims.filter(({ reply, seenAtMs }) => reply === undefined && seenAtMs === undefined);
    const nowMs = performance.now();
    for (const { number, first } of await rowsOf(unseen)) {
      const claim = unseen.find(({ uuids }) => uuids[0] === first);
      if (claim === undefined) continue;
      claim.number = Number(number);
      claim.seenAtMs = nowMs;
    }
  };
  const isPlaced = ({ reply }: Tracked): boolean => typeof reply === 'object' && reply.status === 200;
  const stillWaits = ({ reply, leftAtMs, isRemoved }: Tracked): boolean =>
    reply === undefined && leftAtMs === undefined && !isRemoved;
  const released = new Set<string>();
  const release = async (): Promise<void> => {
    const held = tracked.filter(isPlaced).flatMap(({ uuids }) => uuids.filter((uuid) => !released.has(uuid)));
    if (held.length === 0) return;
    const uuid = random.pick(held);
    released.add(uuid);
    if (random.percent(30)) await query(`delete from allocations where consumer_id = '${uuid}'`);
    else await anyClient().send('DELETE', `/allocations/${uuid}`);
  };
  const noticed: Promise<void>[] = [];
  const leave = (): void => {
    const waiting = tracked.filter(stillWaits);
    if (waiting.length === 0) return;
    const claim = random.pick(waiting);
    claim.leftAtMs = Date.now();
    claim.gone.abort();
    // Once its process has answered a later request, it has noticed that the client has left, however busy it is.
    const later = succeed(clients[claim.side]?.send('GET', `/limits/${project}`) ?? assert.fail('no such process'));
    noticed.push(
      later.then(() => {
        claim.leftAtMs = Date.now();
      }),
    );
  };
  const remove = async (): Promise<void> => {
    const waiting = tracked.filter((claim) => stillWaits(claim) && claim.seenAtMs !== undefined);
    if (waiting.length === 0) return;
    const claim = random.pick(waiting);
    const { status } = await anyClient().send('DELETE', `/waiting/${claim.uuids[0]}`);
    claim.isRemoved = status === 204;
  };

  /** The claims that wait although they fit: alone, and of lines the first ones. */
  const fitting = async (): Promise<readonly Tracked[]> => {
    const waiting = tracked.filter(stillWaits);
    if (waiting.length === 0) return [];
    await see(waiting);
    const [state] = await query(`select
      (select total from inventories i where i.resource_provider_id = p.id) - coalesce((select sum(used) from allocations a
        where a.resource_provider_id = p.id), 0) as free,
      exists (select from resource_provider_traits t join traits n on n.id = t.trait_id
        where t.resource_provider_id = p.id and n.name = '${trait}') as has_trait,
      coalesce((select (resources ->> 'PGPU')::integer from limits where project = '${project}'), 1000) - coalesce((select sum(a.used)
        from allocations a join consumers c on c.uuid = a.consumer_id join projects o on o.id = c.project_id
        where o.external_id = '${project}'), 0) as allowed
      from resource_providers p where p.uuid = '${host}'`);
    const most = Math.min(Number(state?.free), Number(state?.allowed));
    const rows = await query(`select distinct on (line) consumers[1] as first from waiting
      where project_id = '${project}' and line is not null and left_at is null and not is_removed order by line, number`);
    const firsts = new Set(rows.map(({ first }) => first));
    return waiting.filter(
      ({ amounts, query: text, line, uuids }) =>
        amounts.reduce((sum, amount) => sum + amount, 0) <= most &&
        (!text.includes(trait) || state?.has_trait === true) &&
        (line === undefined || firsts.has(uuids[0])),
    );
  };
  let slowestMs = 0;
  const untilNoneFits = async (): Promise<Finding | undefined> => {
    const since = new Map<Tracked, { readonly ms: number; looks: number }>();
    for (;;) {
      const now = await fitting();
      const nowMs = performance.now();
      for (const claim of since.keys()) if (!now.includes(claim)) since.delete(claim);
      if (now.length === 0) return undefined;
      for (const claim of now) {
        const fits = since.get(claim) ?? { ms: nowMs, looks: 0 };
        since.set(claim, fits);
        fits.looks += 1;
        const waitedMs = nowMs - fits.ms;
        slowestMs = Math.max(slowestMs, waitedMs);
        if (fits.looks > mostLooks) return { kind: 'lost wake-up', text: `${describe(claim)} fits for ${waitedMs} ms` };
      }
      await sleep(100);
    }
  };

  await succeed(anyClient().send('POST', '/resource_providers', { body: { name: host, uuid: host } }));
  await stock();
  if (hasLimit) await setLimit(1 + random.below(units));
  for (let steps = 8 + random.below(8); steps > 0; steps -= 1) {
    const chance = random.below(100);
    if (chance < 50) await arrive();
    else if (chance < 75) await release();
    else if (chance < 80) leave();
    else if (chance < 83) await remove();
    else if (chance < 90) {
      total = Math.max(1, total + random.pick([-1, 1, 1]));
      await stock();
    } else if (chance < 95 && hasTrait) await writePart('traits', { traits: random.percent(50) ? [trait] : [] });
    else if (chance < 98 && hasLimit) await setLimit(1 + random.below(units + 2));
    if (random.percent(50)) await sleep(random.below(30));
  }
  let found = await untilNoneFits();
  // Now all of them fit, one after the other in each line.
  total = 1000;
  if (hasLimit) await setLimit(undefined);
  if (hasTrait) await writePart('traits', { traits: [trait] });
  await stock();
  found ??= await untilNoneFits();
  const isUnanswered = (claim: Tracked): boolean => claim.reply === undefined && claim.leftAtMs === undefined;
  for (let looks = 0; found === undefined && tracked.some(isUnanswered) && looks < mostLooks; looks += 1) {
    await fitting();
    await sleep(100);
  }
  await Promise.all(noticed);
  found ??= lost(tracked.filter(stillWaits));
  found ??= wrongAnswer(tracked);
  const names = tracked.flatMap(({ uuids }) => uuids.map((uuid) => `'${uuid}'`)).join();
  const rows =
    names === ''
      ? []
      : await query(
          `select id, uuid, xid, extract(epoch from at) * 1000 as ms from written where uuid in (${names}) order by id`,
        );
  const written = new Map(
    rows.map(({ id, uuid, xid, ms }) => [String(uuid), { id: Number(id), xid: String(xid), atMs: Number(ms) }]),
  );
  found ??= wrongGang(tracked, written) ?? wrongOrder(tracked, written) ?? placedForNobody(tracked, written);
  for (const { gone } of tracked) gone.abort();
  return { found, slowestMs };
}

type Written = ReadonlyMap<string, { readonly id: number; readonly xid: string; readonly atMs: number }>;

const describe = ({ uuids, query, line, side, number }: Tracked): string =>
  `the claim of ${uuids.join()} (${query}, line ${line}, number ${number}, at process ${side})`;

const lost = ([claim]: readonly Tracked[]): Finding | undefined =>
  claim && { kind: 'lost wake-up', text: `${describe(claim)} still waits, although there is room for all` };

/** Claims are placed, ended by DELETE /waiting, or their clients have left. */
function wrongAnswer(tracked: readonly Tracked[]): Finding | undefined {
  for (const claim of tracked) {
    const { reply, leftAtMs, isRemoved } = claim;
    if (leftAtMs !== undefined || (typeof reply === 'object' && reply.status === 200)) continue;
    if (isRemoved && typeof reply === 'object' && reply.status === 409) continue;
    const answer = typeof reply === 'object' ? `${reply.status} ${JSON.stringify(reply.body)}` : reply;
    return { kind: 'answer', text: `${describe(claim)} was answered ${answer}` };
  }
  return undefined;
}

function wrongGang(tracked: readonly Tracked[], written: Written): Finding | undefined {
  for (const claim of tracked) {
    const xids = new Set(claim.uuids.map((uuid) => written.get(uuid)?.xid));
    if (xids.size > 1) return { kind: 'gang', text: `${describe(claim)} was written in part` };
  }
  return undefined;
}

/** Of two claims of a line, or of two equal ones without a line at one process, the earlier one must have been written first. */
function wrongOrder(tracked: readonly Tracked[], written: Written): Finding | undefined {
  const writtenAt = ({ uuids: [uuid = ''] }: Tracked): number => written.get(uuid)?.id ?? Number.POSITIVE_INFINITY;
  const xidOf = ({ uuids: [uuid = ''] }: Tracked): string | undefined => written.get(uuid)?.xid;
  for (const earlier of tracked) {
    if (earlier.leftAtMs !== undefined || earlier.isRemoved) continue;
    for (const later of tracked) {
      if (writtenAt(later) >= writtenAt(earlier) || xidOf(later) === xidOf(earlier)) continue;
      const { number, line, seenAtMs } = earlier;
      const isOfLine =
        line !== undefined &&
        line === later.line &&
        number !== undefined &&
        later.number !== undefined &&
        number < later.number;
      if (isOfLine) return { kind: 'line', text: `${describe(later)} was written before ${describe(earlier)}` };
      const isSame = line === undefined && later.line === undefined && earlier.side === later.side;
      const cameLater = seenAtMs !== undefined && seenAtMs < later.sentAtMs;
      if (isSame && cameLater && earlier.query === later.query) {
        return { kind: 'order', text: `${describe(later)} was written before ${describe(earlier)}` };
      }
    }
  }
  return undefined;
}

/** For how long after its process has noticed that the client has left a claim may still be on its way to the database. */
const underWayMs = 1_000;

function placedForNobody(tracked: readonly Tracked[], written: Written): Finding | undefined {
  for (const claim of tracked) {
    const { leftAtMs, isRemoved, uuids } = claim;
    const ms = written.get(uuids[0] ?? '')?.atMs;
    if (ms === undefined || (leftAtMs === undefined && !isRemoved)) continue;
    const late = leftAtMs === undefined ? ms : ms - leftAtMs;
    if (isRemoved || late > underWayMs) {
      const why = isRemoved
        ? 'DELETE /waiting had ended its wait'
        : `its client had left ${Math.round(late)} ms before`;
      return { kind: 'placed for nobody', text: `${describe(claim)} was written although ${why}` };
    }
  }
  return undefined;
}
