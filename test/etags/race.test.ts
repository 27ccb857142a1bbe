/**
 * If several writers send the tag that all of them have read, exactly one write succeeds, and the others get an error. `ROUNDS=100` makes
 * as many rounds of each contest.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type ServerProcess, startServer } from '../races/server_process.ts';
import { withSharedDatabase } from '../races/shared_database.ts';
import { numberedUuid } from '../support/uuids.ts';

const writers = 8;
const rounds = Number(process.env.ROUNDS ?? '12');

type Reply = {
  readonly status: number;
  readonly etag: string | null;
  readonly json: Readonly<Record<string, unknown>>;
};
type Send = (method: string, path: string, body?: unknown, ifMatch?: string) => Promise<Reply>;

function senderTo({ url }: ServerProcess): Send {
  return async (method, path, body, ifMatch) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: {
        'x-auth-token': 'admin',
        'openstack-api-version': 'placement 2.1',
        ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = text === '' ? {} : JSON.parse(text);
    return { status: response.status, etag: response.headers.get('etag'), json };
  };
}

/** A resource that all writers read. Then each of them writes different content. */
type Contest = {
  readonly path: string;
  /** The write of a writer, based on what it has read. The content differs for each round and writer. */
  readonly write: (
    read: Reply['json'],
    number: number,
  ) => { readonly method: string; readonly path?: string; readonly body?: unknown };
  /** Makes the resource again, if a round has deleted it. */
  readonly restore?: (send: Send) => Promise<unknown>;
};

const provider = '6f0c9f9e-6c9c-4c39-9d8a-1c7f3a8f0a01';
const parent = '6f0c9f9e-6c9c-4c39-9d8a-1c7f3a8f0a02';
const consumer = 'b1d0c1a4-52a1-4a5e-8f0c-0f8f1f3b7c02';
const own = `/resource_providers/${provider}`;
const claim = (amount: number, generation: number | null) => ({
  allocations: { [provider]: { resources: { VCPU: amount } } },
  project_id: 'p',
  user_id: 'u',
  consumer_type: 'INSTANCE',
  consumer_generation: generation,
});
const generationIn = (read: Reply['json']) => Number(read.consumer_generation);
const claimAnew = (send: Send) => send('PUT', `/allocations/${consumer}`, claim(1, null));

const contests: Readonly<Record<string, Contest>> = {
  'a provider': {
    path: own,
    write: (_, number) => ({
      method: 'PUT',
      body: { name: `name ${number}`, parent_provider_uuid: number % 2 === 0 ? parent : null },
    }),
  },
  'all inventories': {
    path: `${own}/inventories`,
    write: (read, number) => ({
      method: number % 3 === 0 ? 'POST' : 'PUT',
      body:
        number % 3 === 0
          ? { resource_class: number % 2 === 0 ? 'DISK_GB' : 'MEMORY_MB', total: number + 1 }
          : { ...read, inventories: { VCPU: { total: number + 1000 } } },
    }),
  },
  'one inventory': {
    path: `${own}/inventories/VCPU`,
    write: (read, number) => ({ method: 'PUT', body: { ...read, total: number + 1000 } }),
  },
  traits: {
    path: `${own}/traits`,
    write: (read, number) => ({ method: 'PUT', body: { ...read, traits: [`CUSTOM_T${number % (2 * writers)}`] } }),
  },
  aggregates: {
    path: `${own}/aggregates`,
    write: (read, number) => ({ method: 'PUT', body: { ...read, aggregates: [numberedUuid(number)] } }),
  },
  'allocations by PUT and POST': {
    path: `/allocations/${consumer}`,
    write: (read, number) =>
      number % 2 === 0
        ? { method: 'PUT', body: claim(2 + number, generationIn(read)) }
        : { method: 'POST', path: '/allocations', body: { [consumer]: claim(2 + number, generationIn(read)) } },
    restore: claimAnew,
  },
  'allocations by PUT and DELETE': {
    path: `/allocations/${consumer}`,
    write: (read, number) =>
      number % 2 === 0 ? { method: 'PUT', body: claim(2 + number, generationIn(read)) } : { method: 'DELETE' },
    restore: claimAnew,
  },
};

for (const { engine, processes } of [
  { engine: 'postgresql', processes: 2 },
  { engine: 'embedded', processes: 1 },
] as const) {
  test(`${writers} writers, ${rounds} rounds, ${processes} server(s) on ${engine}`, async (t) => {
    await withSharedDatabase(engine, async (config) => {
      const servers = await Promise.all(Array.from({ length: processes }, () => startServer(config)));
      try {
        const senders = servers.map(senderTo);
        const [first] = senders;
        if (first === undefined) throw new Error('A race needs a server.');
        await first('POST', '/resource_providers', { name: 'parent', uuid: parent });
        await first('POST', '/resource_providers', { name: 'contested', uuid: provider });
        await first('PUT', `${own}/inventories`, {
          resource_provider_generation: 0,
          inventories: { VCPU: { total: 1000 } },
        });
        for (let i = 0; i < 2 * writers; i++) await first('PUT', `/traits/CUSTOM_T${i}`);
        for (const [name, contest] of Object.entries(contests)) {
          await t.test(name, () => run(senders, contest));
          await first('DELETE', `/allocations/${consumer}`);
        }
      } finally {
        await Promise.all(servers.map((server) => server.kill()));
      }
    });
  });
}

async function run(senders: readonly Send[], { path, write, restore }: Contest): Promise<void> {
  const [first] = senders;
  if (first === undefined) throw new Error('A race needs a server.');
  for (let round = 0; round < rounds; round++) {
    let read: Reply = await first('GET', path);
    if (read.etag === null) {
      await restore?.(first);
      read = await first('GET', path);
    }
    const etag: string = read.etag ?? assert.fail(`${path} has no tag`);
    assert.equal(read.json.etag, etag);
    // The third kind of writer adds one inventory, which must not exist before.
    if (path.endsWith('/inventories')) {
      const reset = { ...read.json, inventories: { VCPU: { total: 1000 + round } } };
      read = await first('PUT', path, reset, etag);
    }
    const sent = Array.from({ length: writers }, (_, writer) => {
      const {
        method,
        path: target = path,
        body,
      }: ReturnType<Contest['write']> = write(read.json, round * writers + writer);
      const send: Send = senders[writer % senders.length] ?? first;
      return send(method, target, body, read.etag ?? '').then((reply) => ({ method, ...reply }));
    });
    const replies = await Promise.all(sent);
    const summaries = replies.map(
      ({ method, status, json }) => `${method} ${status} ${JSON.stringify(json).slice(0, 200)}`,
    );
    assert.equal(replies.filter(({ status }) => status < 300).length, 1, summaries.join('\n'));
    const winner = replies.find(({ status }) => status < 300);
    // A resource that was deleted cannot be deleted again.
    const lost = ({ method, status }: (typeof replies)[number]) =>
      status === 412 || (method === 'DELETE' && winner?.method === 'DELETE' && status === 404);
    assert.equal(replies.filter(lost).length, writers - 1, summaries.join('\n'));
    const after: Reply = await first('GET', path);
    assert.notEqual(after.etag, read.etag);
    // The answer of the winner has the same tag as a later read, unless the answer shows only a part of the resource.
    if (winner?.json.etag !== undefined && winner.method === 'PUT') assert.equal(after.etag, winner.etag);
  }
}
