/**
 * PostgreSQL goes back to an earlier moment, by a base backup and the archive of its write-ahead log, while a process of the service runs
 * through. It and a new process show what was there at that moment, and nothing that came later.
 */
import assert from 'node:assert/strict';
import { chmod, cp, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { deleteToken } from '../../db/statements/tokens.ts';
import { issueToken } from '../../src/access/tokens/stored_tokens.ts';
import { openService, type PlacementService } from '../../src/start/service.ts';
import { followFrom } from '../changes/follow.ts';
import { createDatabase, execute, type PostgresqlServer, startPostgresql } from '../support/postgresql.ts';
import { accepted, at, makeProvider, newClaim, newestVersion, requestsTo, type Send } from '../support/requests.ts';
import { testConfig } from '../support/services.ts';
import { until } from '../support/until.ts';
import { backUp } from './standby.ts';
import { openSwitch } from './switch.ts';

const [host, lost] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];
const consumer = (number: number) => `00000000-0000-4000-8000-0000000001${String(number).padStart(2, '0')}`;
const version = `placement ${newestVersion}`;

/** All that the service tells of what is stored, by path. Where a change is in the log is no part of it. */
async function everything(send: Send): Promise<Readonly<Record<string, unknown>>> {
  const paths = [
    '/resource_providers',
    ...['', '/inventories', '/usages', '/traits', '/aggregates', '/allocations'].map(
      (part) => `/resource_providers/${host}${part}`,
    ),
    `/resource_providers/${lost}`,
    ...[1, 2, 3].map((number) => `/allocations/${consumer(number)}`),
    ...['/consumers', '/usages?project_id=p', '/limits', '/resource_classes', '/traits?name=startswith:CUSTOM_'],
    '/allocation_candidates?resources=VCPU:1',
  ];
  const answers = paths.map(async (each) => {
    const { status, json, headers } = await send('GET', each, undefined, version);
    return [each, { status, body: status === 404 ? '' : json, etag: headers.get('etag') }] as const;
  });
  return Object.fromEntries(await Promise.all(answers));
}

/** A claim of some VCPU of the host for a consumer with this generation. */
const claim = (send: Send, number: number, amount: number, generation: number | null) =>
  send(
    'PUT',
    `/allocations/${consumer(number)}`,
    { ...newClaim({ [host]: { VCPU: amount } }), consumer_generation: generation },
    version,
  );

/** Limits what the project of all claims may have. */
const limitTo = (send: Send, VCPU: number, generation: number | null) =>
  send('PUT', '/limits/p', { resources: { VCPU }, consumers: {}, generation }, version);

/** Follows changes for a minute at most. @returns the status and the body of the answer */
async function wait({ app }: PlacementService, since: string): Promise<string> {
  const headers = { 'x-auth-token': 'admin', 'openstack-api-version': version, prefer: 'wait=60' };
  const answer = await app.request(`/changes?since=${since}&parts=traits`, { headers });
  return `${answer.status} ${await answer.text()}`;
}

test('after a restore the restored data is shown exactly, clients that follow get 410, and claims are written', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-archive-'));
  const [archive, copy] = [path.join(folder, 'archive'), path.join(folder, 'copy')];
  const servers: PostgresqlServer[] = [];
  const ends: (() => unknown)[] = [];
  try {
    await cp(import.meta.filename, path.join(archive, 'origin.txt')); // makes the folder
    for (const each of [folder, archive]) await chmod(each, 0o777); // PostgreSQL runs as another user
    const archiving = { archive_mode: 'on', archive_command: `test ! -f ${archive}/%f && cp %p ${archive}/%f` };
    const original = await startPostgresql({ durable: true, settings: archiving });
    servers.push(original);
    const name = new URL((await createDatabase(original.url)).url).pathname.slice(1);
    const address = await openSwitch(Number(new URL(original.url).port));
    ends.push(address.close);
    const connection = `postgresql://postgres@127.0.0.1:${address.port}/${name}`;
    const config = testConfig({ placementDatabase: { connection, syncOnStartup: true } });
    const service = await openService(config);
    ends.push(service.close);
    const send = requestsTo(service);
    // Another process, for which the tokens in the database count.
    const guarded = await openService({ ...config, api: { ...config.api, authStrategy: 'tokens' } });
    ends.push(guarded.close);
    const statusBy = async (token: string) =>
      (await guarded.app.request('/resource_providers', { headers: { 'x-auth-token': token } })).status;
    const newToken = async () => {
      const wanted = { userId: 'u', projectId: 'p', roles: ['admin'], seconds: undefined };
      const { text, shown } = await issueToken(guarded.database, wanted);
      assert.equal(await statusBy(text), 200);
      return { text, id: shown.id };
    };

    await makeProvider(send, host, { VCPU: { total: 8 } });
    accepted(await claim(send, 1, 2, null));
    accepted(await send('PUT', '/traits/CUSTOM_EARLY'));
    await backUp(original, copy);
    // In the archive only.
    accepted(await claim(send, 2, 1, null));
    accepted(await limitTo(send, 7, null));
    const revoked = await newToken();
    const ofFirst = accepted(await send('GET', `/allocations/${consumer(1)}`, undefined, version));
    const right = Number(at(ofFirst.json, 'consumer_generation'));
    const moment = await everything(send);
    const feed = await followFrom(requestsTo(service, version));
    const [{ now }] = (await execute(original.url, 'select clock_timestamp()::text as now')).rows;

    // What the restored server must not have.
    accepted(await claim(send, 1, 3, right));
    const later = accepted(await send('GET', `/allocations/${consumer(1)}`, undefined, version));
    accepted(await send('DELETE', `/allocations/${consumer(2)}`));
    accepted(await claim(send, 3, 4, null));
    await makeProvider(send, lost, { VCPU: { total: 100 } });
    accepted(await send('PUT', '/traits/CUSTOM_LATE'));
    accepted(await send('DELETE', '/limits/p', undefined, version));
    assert.ok(await deleteToken(guarded.database, revoked.id));
    const made = await newToken();
    assert.notDeepEqual(await everything(send), moment);
    await feed();
    const waiting = wait(service, feed.token());
    await until('the client follows', () => service.followers.size === 1);

    // Also the later segments are there, so that it is the target at which the recovery ends.
    const { rows } = await execute(original.url, 'select pg_walfile_name(pg_switch_wal()) as segment');
    const archived = `select last_archived_wal >= '${rows[0].segment}' as done from pg_stat_archiver`;
    await until('all is archived', async () => (await execute(original.url, archived)).rows[0].done === true);
    await original.stop();
    const restored = await startPostgresql({
      durable: true,
      settings: {
        restore_command: `cp ${archive}/%f %p`,
        recovery_target_time: now,
        recovery_target_action: 'promote',
      },
      makeData: async (data) => {
        await cp(copy, data, { recursive: true });
        await writeFile(path.join(data, 'recovery.signal'), '');
      },
    });
    servers.push(restored);
    const recovering = 'select pg_is_in_recovery() as still';
    await until('it takes writes', async () => (await execute(restored.url, recovering)).rows[0].still === false);
    address.lead(Number(new URL(restored.url).port));

    await until('it is served', async () => (await send('GET', '/readyz')).status === 200);
    assert.deepEqual(await everything(send), moment);
    assert.match(await waiting, /^410 .*"placement.changes_expired"/s);
    await feed.isExpired();
    const restarted = await openService(config);
    ends.push(restarted.close);
    const sendAnew = requestsTo(restarted);
    assert.deepEqual(await everything(sendAnew), moment);
    const { status } = await sendAnew('GET', `/changes?since=${feed.token()}`, undefined, version);
    assert.equal(status, 410);

    await until('a token that was made later ends', async () => (await statusBy(made.text)) === 401);
    await until('a token that was revoked later is valid again', async () => (await statusBy(revoked.text)) === 200);

    // Generations and tags from the lost time do not match.
    const fromLater = { 'if-match': String(later.headers.get('etag')) };
    const body = { ...newClaim({ [host]: { VCPU: 1 } }), consumer_generation: right };
    const refused = await send('PUT', `/allocations/${consumer(1)}`, body, version, fromLater);
    assert.equal(refused.status, 412);
    const generation = Number(at(later.json, 'consumer_generation'));
    assert.equal((await claim(send, 1, 1, generation)).status, 409);

    // Claims are judged by the restored data: of 8 VCPU 3 are used, and the limit of the project is 7.
    assert.match((await claim(sendAnew, 4, 5, null)).text, /Project 'p' is limited to 7 of VCPU: it has 3, /);
    accepted(await claim(send, 4, 4, null));
    accepted(await limitTo(sendAnew, 100, 1));
    assert.equal((await claim(send, 5, 2, null)).status, 409, 'one is left');
    accepted(await claim(sendAnew, 5, 1, null));
    accepted(await claim(send, 1, 1, right));
    await makeProvider(sendAnew, lost, { VCPU: { total: 1 } });
    assert.equal(at((await send('GET', `/resource_providers/${host}/usages`)).json, 'usages', 'VCPU'), 7);

    // A client that reads everything can follow again.
    const anew = await followFrom(requestsTo(service, version));
    accepted(await sendAnew('PUT', '/traits/CUSTOM_ANEW'));
    accepted(
      await sendAnew('PUT', `/resource_providers/${host}/traits`, {
        resource_provider_generation: at((await send('GET', `/resource_providers/${host}`)).json, 'generation'),
        traits: ['CUSTOM_ANEW'],
      }),
    );
    assert.match(JSON.stringify(await anew()), new RegExp(host));
  } finally {
    for (const end of ends.toReversed()) await end();
    for (const server of servers) await server.stop().catch(() => {});
    await rm(folder, { recursive: true, force: true });
  }
});
