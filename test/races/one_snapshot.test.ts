/**
 * An answer of many megabytes is computed while its client reads it, slowly, and meanwhile other programs move usage, providers and
 * whole trees: it shows the snapshot of the fleet that its token names.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { test } from 'node:test';
import { listen } from '../../src/http/server/listen.ts';
import { withFreshDatabase } from '../support/engines.ts';
import { execute } from '../support/postgresql.ts';
import { accepted, at, newClaim, newestVersion, requestsTo, type Send } from '../support/requests.ts';
import { openServiceOn } from '../support/services.ts';
import { until } from '../support/until.ts';
import { numberedUuid } from '../support/uuids.ts';

/** Enough for two chunks and more of candidates, and for as much of their summaries. */
const hostCount = 5_000;
const traitsOfEach = 80;
/** Usage moves between the first and the last host, the second and the last but one, and so on. */
const pairCount = 4;

const host = (number: number): string => numberedUuid(number, 'a');
/** A provider that moves between the trees of the fifth host and of the last but five. The tree that has it has 300 units, the other 200. */
const wanderer = numberedUuid(1, 'b');
const [homeNumber, otherNumber] = [5, hostCount - 5];
/** In each snapshot one of two hosts exists, which would come first and last in the answer. */
const twins = [numberedUuid(1, '0'), numberedUuid(1, 'f')] as const;

const insertHosts = `insert into resource_providers (created_at, updated_at, uuid, name, generation, id, root_provider_id)
  select now(), now(), 'aaaaaaaa-0000-4000-8000-' || lpad(n::text, 12, '0'), 'host' || n, 1, n, n
    from generate_series(1, ${hostCount}) n;
  select setval(pg_get_serial_sequence('resource_providers', 'id'), 100000);
  insert into resource_provider_traits (created_at, resource_provider_id, trait_id)
    select now(), n, t.id from generate_series(1, ${hostCount}) n, (select id from traits order by id limit ${traitsOfEach}) t;`;

const inventory = (providers: string, total: number): string => `
  insert into inventories (created_at, updated_at, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit,
      step_size, allocation_ratio)
    select now(), now(), p.id, c.id, ${total}, 0, 1, ${total}, 1, 1 from resource_providers p, resource_classes c
    where c.name = 'VCPU' and p.uuid ${providers};`;

const totals = (number: number, total: number): string =>
  `update inventories set total = ${total}, max_unit = ${total} where resource_provider_id = ${number};`;

const makeTwin = (uuid: string): string => `
  insert into resource_providers (created_at, updated_at, uuid, name, generation) values (now(), now(), '${uuid}', '${uuid}', 1);
  update resource_providers set root_provider_id = id where uuid = '${uuid}';${inventory(`= '${uuid}'`, 100)}`;

const ofProvider = (uuid: string): string => `(select id from resource_providers where uuid = '${uuid}')`;

/** In one transaction: one twin goes and the other comes; the wanderer moves, and with it what the two trees have. */
const wander = (round: number): string => {
  const [gone, made] = round % 2 === 0 ? twins : twins.toReversed();
  const [to, from] = round % 2 === 0 ? [otherNumber, homeNumber] : [homeNumber, otherNumber];
  return `begin;
    delete from inventories where resource_provider_id = ${ofProvider(gone ?? '')};
    delete from resource_providers where uuid = '${gone}';${makeTwin(made ?? '')}
    update resource_providers set parent_provider_id = ${to}, root_provider_id = ${to}, generation = generation + 1
      where uuid = '${wanderer}';
    ${totals(to, 300)}${totals(from, 200)}
    update resource_providers set generation = generation + 1 where id in (${from}, ${to});
    commit;`;
};

/** What an answer tells of a provider. */
type Figures = { readonly used: number; readonly total: number; readonly root: string; readonly rest: string };

type Setup = {
  readonly url: string;
  readonly send: Send;
  /** Changes everything once, as another process and another program, and lets the service that answers see it. */
  readonly change: () => Promise<void>;
  readonly counts: () => { readonly held: number; readonly kept: number };
};

async function withHosts(use: (setup: Setup) => Promise<void>): Promise<void> {
  await withFreshDatabase('postgresql', async (database) => {
    const { connection = '' } = database.config;
    const first = await openServiceOn(database);
    await execute(
      connection,
      `${insertHosts}${inventory("like 'aaaaaaaa%'", 200)}${totals(homeNumber, 300)}
      insert into resource_providers (created_at, updated_at, uuid, name, generation, parent_provider_id, root_provider_id)
        values (now(), now(), '${wanderer}', 'wanderer', 1, ${homeNumber}, ${homeNumber});
      ${inventory(`= '${wanderer}'`, 100)}${makeTwin(twins[0])}`,
    );
    const other = await openServiceOn(database);
    const { url, close } = await listen(first.app, { host: '127.0.0.1', port: 0, drainMs: 100 });
    const [send, sendToOther] = [requestsTo(first, `placement ${newestVersion}`), requestsTo(other, 'placement 1.38')];
    const movers = Array.from({ length: pairCount }, (_, pair) => ({
      consumer: randomUUID(),
      ends: [host(pair + 1), host(hostCount - pair)] as const,
    }));
    const claim = async ({ consumer, ends }: (typeof movers)[number], round: number) => {
      const body = {
        ...newClaim({ [ends[round % 2] ?? '']: { VCPU: 7 } }),
        consumer_generation: round === 0 ? null : round,
      };
      accepted(await sendToOther('PUT', `/allocations/${consumer}`, body));
    };
    await Promise.all(movers.map((mover) => claim(mover, 0)));
    let round = 0;
    try {
      await use({
        url,
        send,
        change: async () => {
          round += 1;
          await Promise.all(movers.map((mover) => claim(mover, round)));
          await execute(connection, wander(round - 1));
          accepted(await send('GET', `/resource_providers?uuid=${wanderer}`));
        },
        counts: () => first.fleet.heldSnapshots,
      });
    } finally {
      await close();
      await Promise.all([first.close(), other.close()]);
    }
  });
}

/** Asks for an answer. The client has none of its body yet, and reads no more than it asks for. */
async function ask(url: string): Promise<http.IncomingMessage> {
  const headers = { 'x-auth-token': 'admin', 'openstack-api-version': `placement ${newestVersion}` };
  const [response] = await once(http.get(url, { headers, agent: false }), 'response');
  assert.equal(response.statusCode, 200);
  return response;
}

/** Reads an answer slowly: after each half of a megabyte everything changes. */
async function readSlowly({ url, change, counts }: Setup, path: string) {
  const response = await ask(url + path);
  const read: Buffer[] = [];
  let [unseen, changes, kept] = [0, 0, 0];
  for await (const chunk of response) {
    read.push(chunk);
    unseen += chunk.length;
    if (changes > 0 && unseen < 512 * 1024) continue;
    await change();
    changes += 1;
    unseen = 0;
    kept = Math.max(kept, counts().kept);
  }
  await until('the snapshot is not held any more', () => counts().held === 0);
  return {
    json: JSON.parse(Buffer.concat(read).toString()),
    token: String(response.headers['placement-changes-token']),
    changes,
    kept,
  };
}

type Summaries = ReadonlyMap<string, Figures>;

const fromCandidates = (json: unknown): Summaries =>
  new Map(
    Object.entries(Object(at(json, 'provider_summaries'))).map(([uuid, shown]) => [
      uuid,
      {
        used: Number(at(shown, 'resources', 'VCPU', 'used')),
        total: Number(at(shown, 'resources', 'VCPU', 'capacity')),
        root: String(at(shown, 'root_provider_uuid')),
        rest: JSON.stringify(shown),
      },
    ]),
  );

const fromSummaries = (json: unknown): Summaries =>
  new Map(
    // A list, as the API says.
    (at(json, 'provider_summaries') as readonly unknown[]).map((shown) => [
      String(at(shown, 'uuid')),
      {
        used: Number(at(shown, 'usages', 'VCPU')),
        total: Number(at(shown, 'inventories', 'VCPU', 'total')),
        root: String(at(shown, 'root_provider_uuid')),
        rest: JSON.stringify(shown),
      },
    ]),
  );

function assertOneSnapshot(summaries: Summaries): void {
  assert.equal(summaries.size, hostCount + 2);
  for (let pair = 0; pair < pairCount; pair++) {
    const [one, other] = [summaries.get(host(pair + 1)), summaries.get(host(hostCount - pair))];
    assert.equal(
      (one?.used ?? 0) + (other?.used ?? 0),
      7,
      `pair ${pair}: ${one?.used} and ${other?.used} of 7 are used`,
    );
  }
  assert.equal(twins.filter((uuid) => summaries.has(uuid)).length, 1, 'one of the twins');
  const root = summaries.get(wanderer)?.root ?? '';
  const [home, away] = [homeNumber, otherNumber].map((number) => summaries.get(host(number)));
  assert.deepEqual(
    [home?.total, away?.total],
    root === host(homeNumber) ? [300, 200] : [200, 300],
    `the wanderer is below ${root}`,
  );
}

/** Long names, so that the candidates alone are more than the first chunk. */
const groups = Array.from({ length: 12 }, (_, number) => `resources_${'LONG'.repeat(14)}${number}=VCPU:1`).join('&');

for (const [what, path, read] of [
  ['allocation candidates', `/allocation_candidates?${groups}&group_policy=none`, fromCandidates],
  ['provider summaries', '/provider_summaries?limit=10000', fromSummaries],
] as const) {
  test(`an answer with ${what} that is read slowly shows one snapshot, from which a client can follow`, async () => {
    await withHosts(async (setup) => {
      const leaving = await ask(setup.url + path);
      assert.equal(setup.counts().held, 1);
      leaving.destroy();
      await until('the snapshot of a client that left is not held any more', () => setup.counts().held === 0);
      const { json, token, changes, kept } = await readSlowly(setup, path);
      const summaries = read(json);
      assertOneSnapshot(summaries);
      if (what === 'allocation candidates') {
        const requests = at(json, 'allocation_requests');
        const placed = (requests as readonly unknown[]).map((each) =>
          Object.keys(Object(at(each, 'allocations'))).join(),
        ); // a list
        // The wanderer is beside its root, so its tree has more candidates than the others.
        assert.ok(
          placed.length >= hostCount && new Set(placed.flatMap((each) => each.split(','))).size === hostCount + 2,
        );
      }
      const now = read(accepted(await setup.send('GET', path)).json);
      assertOneSnapshot(now);
      const shown = at(
        accepted(await setup.send('GET', `/changes?since=${token}`)).json,
        'changes',
      ) as readonly unknown[]; // a list
      const changed = new Set(shown.map((each) => String(at(each, 'resource_provider'))));
      const differing = [...new Set([...summaries.keys(), ...now.keys()])].filter(
        (uuid) => summaries.get(uuid)?.rest !== now.get(uuid)?.rest,
      );
      assert.deepEqual(
        differing.filter((uuid) => !changed.has(uuid)),
        [],
        'all that changed is shown',
      );
      assert.ok(changes > 15 && kept > 2 * pairCount, `${changes} changes, ${kept} providers kept`);
    });
  });
}
