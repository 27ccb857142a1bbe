/** Teams that share a pool, by the policy of `placement-manage policy teams`: what each may do, and what it learns of the others. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { suite, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { targets } from '../../src/access/policy/defaults.ts';
import { teamsPolicy } from '../../src/access/policy/teams.ts';
import { routes } from '../../src/api/routes.ts';
import type { PlacementService } from '../../src/start/service.ts';
import { anyEngine } from '../support/engines.ts';
import {
  type Answer,
  accepted,
  at,
  makeProvider,
  newClaim,
  newestVersion,
  requestsTo,
  type Send,
} from '../support/requests.ts';
import { type ConfigOverrides, withTestService } from '../support/services.ts';
import { until } from '../support/until.ts';
import { operations } from './operations.ts';
import { makeScene, nameOf, requestsOf, sendOperation } from './scene.ts';

async function withPolicy(
  text: string,
  use: (service: PlacementService) => Promise<void>,
  more: ConfigOverrides = {},
): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'placement-rights-'));
  const policyFile = path.join(folder, 'policy.yaml');
  try {
    await writeFile(policyFile, text);
    await withTestService(
      anyEngine,
      { osloPolicy: { policyFile }, compute: { enabled: true }, metrics: { requireToken: true }, ...more },
      use,
    );
  } finally {
    await rm(folder, { recursive: true });
  }
}

const withTeams = (use: (service: PlacementService) => Promise<void>, more?: ConfigOverrides) =>
  withPolicy(teamsPolicy(), use, more);

const callerIn = (service: PlacementService, project: string, ...roles: readonly string[]): Send =>
  requestsOf(service, { 'x-auth-token': `user:${project}`, 'x-roles': roles.join() });

const newest = `placement ${newestVersion}`;
const byQuery = (project_id: string, query = 'resources=VCPU:1', more: object = {}) => ({
  candidates: query,
  project_id,
  user_id: 'user',
  consumer_generation: null,
  consumer_type: 'JOB',
  ...more,
});

test('a 403 for a claim names what it is for: another version, the providers, or a consumer of another project', () =>
  withTeams(async (service) => {
    const member = callerIn(service, 'vision', 'member');
    const refused = async (method: string, path: string, body: unknown, version?: string): Promise<string> => {
      const { status, json, text } = await member(method, path, body, version);
      assert.equal(status, 403, text);
      return String(at(json, 'errors', 0, 'detail'));
    };
    const [one, two] = [randomUUID(), randomUUID()];
    const path = `/allocations/${one}`;
    const mine = byQuery('vision');
    const caller = 'The token is of user user in project vision, and has the roles member.';
    const denied = (name: string) => `Policy does not allow placement:allocations:${name} to be performed.`;
    for (const version of ['placement 1.39', 'placement 1.0', '']) {
      const asked = version === '' ? '1.0' : version.slice(-4).trim();
      const hint = `'candidates' needs microversion 2.4; this request is for ${asked}.`;
      assert.ok((await refused('PUT', path, mine, version)).includes(`${denied('update')} ${hint}`));
    }
    const waiting = { ...mine, line: 'gpu' };
    assert.match(
      await refused('PUT', path, waiting, 'placement 1.28'),
      /'line' needs microversion 2\.8; .* for 1\.28\./,
    );
    const gang = { [one]: mine, [two]: byQuery('robots') };
    assert.match(await refused('POST', '/allocations', gang, 'placement 1.39'), /'candidates' needs microversion 2\.4/);
    const named = { ...newClaim({ [randomUUID()]: { VCPU: 1 } }), project_id: 'vision' };
    assert.equal((await refused('PUT', path, named, 'placement 1.39')).trim().endsWith(denied('update')), true);
    assert.equal(
      await refused('PUT', path, named),
      `${denied('update')} A claim that names its providers needs it; one by 'candidates' needs placement:allocations:place. ${caller}`,
    );
    assert.equal(
      await refused('POST', '/allocations', gang),
      `${denied('place')} Consumer ${two} is to be of project robots and user user. ${caller}`,
    );
    const admin = callerIn(service, 'ops', 'admin');
    const host = randomUUID();
    await makeProvider(admin, host, { VCPU: { total: 8 } });
    accepted(await admin('PUT', `/allocations/${two}`, byQuery('robots')));
    assert.equal(
      await refused('PUT', `/allocations/${two}`, mine),
      `${denied('place')} Consumer ${two} is in use already, and not yours to change: a new claim needs a UUID of its own. ${caller}`,
    );
    assert.doesNotMatch(await refused('PUT', `/allocations/${two}`, named, 'placement 1.39'), /in use/);
  }));

test('a 403 for a list that names no project says how a member asks for its own', () =>
  withTeams(async (service) => {
    const member = callerIn(service, 'vision', 'member');
    const detailOf = async (path: string, send = member): Promise<string> => {
      const { status, json, text } = await send('GET', path, undefined, newest);
      assert.equal(status, 403, text);
      return String(at(json, 'errors', 0, 'detail'));
    };
    const hint = /It may ask for what its own project has: project_id=vision, and no provider\./;
    for (const path of ['/consumers', '/holdings', '/usage_records', '/usage_totals?by=user_id', '/waiting']) {
      assert.match(await detailOf(path), hint);
    }
    const ofHost = `/holdings?project_id=vision&resource_provider=${randomUUID()}`;
    assert.match(await detailOf(ofHost), hint);
    assert.doesNotMatch(await detailOf('/holdings?project_id=robots'), hint);
    assert.doesNotMatch(await detailOf('/resource_providers'), hint);
    assert.doesNotMatch(await detailOf('/holdings', callerIn(service, 'vision', 'none')), hint);
  }));

test('a claim of several projects that waits is neither shown to one of them nor ended by it', () =>
  withTeams(async (service) => {
    const admin = callerIn(service, 'ops', 'admin');
    const gang = [randomUUID(), randomUUID(), randomUUID()].sort();
    const [first = '', second = '', third = ''] = gang;
    const body = {
      [third]: byQuery('robots', undefined, { name: 'secret' }),
      [second]: byQuery('robots'),
      [first]: byQuery('vision'),
    };
    const waitingIn = (project: string, role: string): Send =>
      requestsOf(service, { 'x-auth-token': `user:${project}`, 'x-roles': role, prefer: 'wait=60' });
    const waits = waitingIn('ops', 'admin')('POST', '/allocations', body);
    const own = randomUUID();
    const ofVision = callerIn(service, 'vision', 'member');
    const waitsOwn = waitingIn('vision', 'member')('PUT', `/allocations/${own}`, byQuery('vision'));
    const listed = async (send: Send, query: string): Promise<readonly unknown[]> => {
      const { json } = accepted(await send('GET', `/waiting${query}`, undefined, newest));
      const claims = at(json, 'waiting') as readonly { readonly consumers: readonly string[] }[]; // the list of GET /waiting
      return claims.map(({ consumers }) => consumers);
    };
    await until('both claims are listed', async () => (await listed(admin, '')).length === 2);
    for (const project of ['vision', 'robots']) {
      assert.ok(
        (await listed(admin, `?project_id=${project}`)).some((consumers) => isDeepStrictEqual(consumers, gang)),
      );
      const member = callerIn(service, project, 'member');
      assert.deepEqual(await listed(member, `?project_id=${project}`), project === 'vision' ? [[own]] : []);
      assert.deepEqual(
        await listed(callerIn(service, project, 'reader'), `?project_id=${project}&limit=1`),
        project === 'vision' ? [[own]] : [],
      );
      for (const uuid of gang)
        assert.equal((await member('DELETE', `/waiting/${uuid}`, undefined, newest)).status, 404);
    }
    assert.deepEqual(await listed(admin, '?project_id=others'), []);
    accepted(await ofVision('DELETE', `/waiting/${own}`, undefined, newest));
    accepted(await admin('DELETE', `/waiting/${second}`, undefined, newest));
    assert.deepEqual([(await waitsOwn).status, (await waits).status], [409, 409]);
  }));

test('from 2.1 on a 400 for a field of a newer version names this version', () =>
  withTeams(async (service) => {
    const admin = callerIn(service, 'ops', 'admin');
    const detailOf = async (body: object, version: string, path = `/allocations/${randomUUID()}`): Promise<string> => {
      const { status, json, text } = await admin(path === '/allocations' ? 'POST' : 'PUT', path, body, version);
      assert.equal(status, 400, text);
      return String(at(json, 'errors', 0, 'detail'));
    };
    const lined = { ...byQuery('vision'), line: 'gpu' };
    const hint = "'line' needs microversion 2.8; this request is for 2.7.";
    assert.ok((await detailOf(lined, 'placement 2.7')).endsWith(hint));
    assert.ok((await detailOf({ [randomUUID()]: lined }, 'placement 2.7', '/allocations')).endsWith(hint));
    assert.match(
      await detailOf({ ...lined, name: 'train' }, 'placement 2.8'),
      /'name' needs microversion 2\.9; this request is for 2\.8\.$/,
    );
    assert.match(await detailOf(byQuery('vision'), 'placement 2.3'), /'candidates' needs microversion 2\.4/);
    assert.doesNotMatch(await detailOf({ ...lined, colour: 'red' }, 'placement 2.9'), /microversion/);
    assert.doesNotMatch(await detailOf(lined, 'placement 1.39'), /microversion/);
  }));

test('the rules whose target has a project are those of the endpoints that find one', () => {
  const found = routes.flatMap(({ policy, ownerDecides, policyTarget }) =>
    policy === undefined || (!ownerDecides && policyTarget === undefined) ? [] : [policy],
  );
  assert.deepEqual(
    [...targets.keys()].toSorted(),
    [...new Set([...found, 'placement:allocations:place', 'placement:allocations:uncounted'])].toSorted(),
  );
});

/** What members and readers of the project may do, and what a caller of another one gets. All else is for administrators. */
const shared: Readonly<Record<string, { readonly roles: readonly string[]; readonly elsewhere: number }>> = {
  'GET /allocations/{vm}': { roles: ['member', 'reader'], elsewhere: 200 },
  'DELETE /allocations/{vm}': { roles: ['member'], elsewhere: 404 },
  'GET /consumers/{vm}': { roles: ['member', 'reader'], elsewhere: 404 },
  'PUT /consumers/{vm}/term': { roles: ['member'], elsewhere: 404 },
  'GET /consumers?project_id': { roles: ['member', 'reader'], elsewhere: 403 },
  'GET /usages?project_id': { roles: ['member', 'reader'], elsewhere: 403 },
  'GET /waiting?project_id': { roles: ['member', 'reader'], elsewhere: 403 },
  'GET /holdings?project_id': { roles: ['member', 'reader'], elsewhere: 403 },
  'GET /usage_records?project_id': { roles: ['member', 'reader'], elsewhere: 403 },
  'GET /usage_totals?project_id': { roles: ['member', 'reader'], elsewhere: 403 },
  'DELETE /waiting/{vm}': { roles: ['member'], elsewhere: 404 },
  'GET /limits/p1?project_id': { roles: ['member', 'reader'], elsewhere: 403 },
};

suite('each operation of the API', () => {
  test('a request about a project is allowed to its members and readers, or to administrators and services alone', async () => {
    await withTeams(async (service) => {
      const admin = callerIn(service, 'p1', 'admin', 'service');
      let scene = await makeScene(admin);
      for (const operation of operations) {
        if (operation.allowed === 'everybody') continue;
        const { method, path: where, project, body } = operation;
        const isByQuery = body !== undefined && JSON.stringify(body(scene)).includes('"candidates"');
        const key = `${method} ${where.replace('{unknown}', '{vm}').replace('{unused}', '{vm}')}${project === undefined ? '' : '?project_id'}`;
        const owner = project ?? 'p1';
        const rights = isByQuery ? { roles: ['member'], elsewhere: 403 } : shared[key];
        for (const callers of ['p1', 'p2']) {
          for (const role of ['member', 'reader', 'other']) {
            const { status, text } = await sendOperation(callerIn(service, callers, role), operation, scene);
            const mayAtAll = rights?.roles.includes(role) === true;
            const what = `${nameOf(operation)} by ${role} of ${callers}: ${status} ${text}`;
            if (!mayAtAll) assert.equal(status, 403, what);
            else if (callers !== owner) assert.equal(status, rights?.elsewhere, what);
            else assert.ok(status < 300 || status === operation.status, what);
            if (mayAtAll && method !== 'GET' && callers === owner) scene = await makeScene(admin);
          }
        }
        for (const role of operation.allowed.startsWith('admin') ? ['admin'] : []) {
          const { status, text } = await sendOperation(callerIn(service, 'p3', role), operation, scene);
          assert.ok(status < 300 || status === operation.status, `${nameOf(operation)} by ${role}: ${status} ${text}`);
          if (method !== 'GET') scene = await makeScene(admin);
        }
      }
    });
  });
});

type World = {
  readonly admin: Send;
  readonly mine: Send;
  readonly other: Send;
  readonly host: string;
  /** Consumers of the two projects, and a UUID that nothing has. */
  readonly own: string;
  readonly foreign: string;
  readonly nobody: string;
};

/** A host with a consumer of each of the projects mine and other. */
const withTwo = (use: (world: World) => Promise<void>) =>
  withTeams(async (service) => {
    const admin = requestsTo(service, newest);
    const [host, own, foreign] = [randomUUID(), randomUUID(), randomUUID()];
    await makeProvider(admin, host, { VCPU: { total: 8 } });
    for (const [uuid, project_id] of [
      [own, 'mine'],
      [foreign, 'other'],
    ] as const) {
      const claim = { ...newClaim({ [host]: { VCPU: 1 } }), project_id, expires_in: 600 };
      accepted(await admin('PUT', `/allocations/${uuid}`, claim));
    }
    const [mine, other] = [callerIn(service, 'mine', 'member'), callerIn(service, 'other', 'member')];
    await use({ admin, mine, other, host, own, foreign, nobody: randomUUID() });
  });

/** What an answer says, without the ids and UUIDs that the request chose, and without times. */
const shownBy = ({ status, text, headers }: Answer, ...uuids: readonly string[]): string => {
  const shown = [...headers].filter(
    ([name]) => !['x-openstack-request-id', 'last-modified', 'content-length'].includes(name),
  );
  const plain = uuids
    .reduce((before, uuid) => before.replaceAll(uuid, 'UUID'), text)
    .replaceAll(/req-[0-9a-f-]{36}/g, 'req');
  return JSON.stringify([status, plain, shown]);
};

suite('a consumer of another project', () => {
  test('a consumer of another project differs from a missing one only in a claim of its UUID', async () => {
    await withTwo(async ({ mine, admin, foreign, nobody }) => {
      const tagOfForeign = String((await admin('GET', `/allocations/${foreign}`)).headers.get('etag'));
      const before = (await admin('GET', `/consumers/${foreign}`)).text;
      const asked: readonly ((uuid: string) => Promise<Answer>)[] = [
        (uuid) => mine('GET', `/allocations/${uuid}`),
        (uuid) => mine('GET', `/allocations/${uuid}`, undefined, 'placement 1.0'),
        (uuid) => mine('GET', `/consumers/${uuid}`),
        (uuid) => mine('DELETE', `/allocations/${uuid}`),
        (uuid) => mine('DELETE', `/allocations/${uuid}`, undefined, 'placement 1.0'),
        (uuid) => mine('PUT', `/consumers/${uuid}/term`, { expires_in: 5, consumer_generation: 1 }),
        (uuid) => mine('PUT', `/consumers/${uuid}/term`, { expires_in: 5, consumer_generation: 7 }),
      ];
      for (const ask of asked) assert.equal(shownBy(await ask(foreign), foreign), shownBy(await ask(nobody), nobody));
      assert.ok(tagOfForeign.startsWith('W/'));
      for (const more of [{}, { consumer_generation: 1 }, { consumer_generation: 9 }, { dry_run: true }]) {
        const answer = await mine('PUT', `/allocations/${foreign}`, byQuery('mine', 'resources=VCPU:1', more));
        assert.equal(answer.status, 403, answer.text);
        assert.ok(!answer.text.includes('other') && !answer.text.includes('generation'), answer.text);
      }
      const gang = { [randomUUID()]: byQuery('mine'), [foreign]: byQuery('mine') };
      assert.equal((await mine('POST', '/allocations', gang)).status, 403);
      assert.equal((await admin('GET', `/consumers/${foreign}`)).text, before);
      assert.equal(at((await mine('GET', '/consumers?project_id=mine')).json, 'consumers', 'length'), 1);
    });
  });

  test('a consumer of another project has no effect in with and apart_from', async () => {
    await withTwo(async ({ mine, other, foreign, nobody }) => {
      for (const by of ['with', 'apart_from']) {
        const asked = async (uuid: string) => {
          const body = byQuery('mine', `resources=VCPU:1&${by}=${uuid}`, { dry_run: true });
          return mine('PUT', `/allocations/${randomUUID()}`, body);
        };
        const [hidden, absent] = [await asked(foreign), await asked(nobody)];
        assert.deepEqual(
          [hidden.status, at(hidden.json, 'errors', 0, 'code')],
          [absent.status, at(absent.json, 'errors', 0, 'code')],
        );
        // It is there for its own project.
        const body = byQuery('other', `resources=VCPU:1&${by}=${foreign}`, { dry_run: true });
        const own = await other('PUT', `/allocations/${randomUUID()}`, body);
        assert.equal(own.status === 200, by === 'with', own.text);
      }
      const written = await mine(
        'PUT',
        `/allocations/${randomUUID()}`,
        byQuery('mine', `resources=VCPU:1&apart_from=${foreign}`),
      );
      assert.equal(written.status, 200, written.text);
    });
  });

  test('cannot be created, and no consumer can be moved from or to another project', async () => {
    await withTwo(async ({ mine, host, own }) => {
      assert.equal((await mine('PUT', `/allocations/${randomUUID()}`, byQuery('other'))).status, 403);
      const given = byQuery('other', 'resources=VCPU:1', { consumer_generation: 1 });
      assert.equal((await mine('PUT', `/allocations/${own}`, given)).status, 403);
      const plain = { ...newClaim({ [host]: { VCPU: 1 } }), project_id: 'mine' };
      assert.equal((await mine('PUT', `/allocations/${randomUUID()}`, plain)).status, 403);
      const owner = { project_id: 'other', user_id: 'u', consumer_type: 'JOB', consumer_generation: 1 };
      assert.equal((await mine('PUT', `/consumers/${own}`, owner)).status, 403);
      const moved = byQuery('mine', 'resources=VCPU:2', { consumer_generation: 1 });
      assert.equal((await mine('PUT', `/allocations/${own}`, moved)).status, 200);
      assert.equal((await mine('DELETE', `/allocations/${own}`)).status, 204);
    });
  });
});

test('from 2.9 on empty allocations need what DELETE needs, and release no consumer of another project', async () => {
  await withTwo(async ({ admin, mine, host, own, foreign, nobody }) => {
    const heldBy = async (uuid: string) => (await admin('GET', `/consumers/${uuid}`)).text;
    const owner = { project_id: 'mine', user_id: 'u', consumer_type: 'JOB' };
    const released = (consumer_generation: number | null) => ({ ...owner, allocations: {}, consumer_generation });
    const exchange = (victim: string, generation: number | null, urgent = randomUUID()) => ({
      [victim]: released(generation),
      [urgent]: byQuery('mine', 'resources=VCPU:7'),
    });
    const before = await heldBy(foreign);
    for (const generation of [null, 1, 9]) {
      for (const body of [exchange(foreign, generation), { [foreign]: released(generation) }]) {
        for (const more of [{}, { dry_run: true }]) {
          const { status, text } = await mine('POST', '/allocations', { ...body, ...more });
          assert.equal(status, 403, text);
          assert.ok(!text.includes('other') && !text.includes('generation'), text);
        }
      }
      const { status, text } = await mine('PUT', `/allocations/${foreign}`, released(generation));
      assert.equal(status, 403, text);
      assert.match(text, /placement:allocations:delete/);
    }
    const toOther = { ...exchange(own, 1), [own]: { ...released(1), project_id: 'other' } };
    assert.equal((await mine('POST', '/allocations', toOther)).status, 403);
    const naming = {
      ...exchange(own, 1),
      [nobody]: { ...released(null), allocations: { [host]: { resources: { VCPU: 1 } } } },
    };
    assert.match((await mine('POST', '/allocations', naming)).text, /A claim that names its providers needs it/);
    assert.equal((await mine('POST', '/allocations', exchange(own, 1), 'placement 2.8')).status, 403);
    assert.equal(await heldBy(foreign), before);

    assert.equal((await mine('POST', '/allocations', exchange(own, 9))).status, 409);
    const urgent = randomUUID();
    // The foreign consumer has one of the eight, so that seven are only free without the own one.
    assert.equal((await mine('PUT', `/allocations/${urgent}`, byQuery('mine', 'resources=VCPU:7'))).status, 409);
    const placed = await mine('POST', '/allocations', exchange(own, 1, urgent));
    assert.equal(placed.status, 200, placed.text);
    assert.deepEqual(at(placed.json, own, 'allocations'), {});
    assert.deepEqual(at(placed.json, urgent, 'allocations', host, 'resources'), { VCPU: 7 });
    assert.equal((await mine('PUT', `/allocations/${urgent}`, released(1))).status, 204);
    assert.equal(await heldBy(foreign), before);
  });
});

test('empty allocations need the rule of DELETE also where claims by query are allowed', () =>
  withPolicy(`"placement:allocations:place": role:member and project_id:%(project_id)s\n`, async (service) => {
    const member = callerIn(service, 'mine', 'member');
    const released = { ...byQuery('mine'), candidates: undefined, allocations: {} };
    const { status, text } = await member('POST', '/allocations', { [randomUUID()]: released }, newest);
    assert.equal(status, 403, text);
    assert.match(text, /placement:allocations:delete/);
  }));

test('a member cannot leave its consumer a type that does not count for limits', async () => {
  await withTeams(
    async (service) => {
      const admin = requestsTo(service, newest);
      const member = callerIn(service, 'mine', 'member');
      const [host, moving, job] = [randomUUID(), randomUUID(), randomUUID()];
      await makeProvider(admin, host, { VCPU: { total: 100 } });
      for (const [uuid, consumer_type] of [
        [moving, 'MIGRATION'],
        [job, 'JOB'],
      ] as const) {
        const claim = { ...newClaim({ [host]: { VCPU: 1 } }), project_id: 'mine', consumer_type };
        accepted(await admin('PUT', `/allocations/${uuid}`, claim));
      }
      const keeping = { candidates: 'resources=VCPU:50', project_id: 'mine', user_id: 'u', consumer_type: 'unknown' };
      const claim = (send: Send, uuid: string) =>
        send('PUT', `/allocations/${uuid}`, { ...keeping, consumer_generation: 1 });
      const refused = await claim(member, moving);
      assert.equal(refused.status, 403, refused.text);
      assert.match(refused.text, /placement:allocations:uncounted/);
      accepted(await claim(member, job));
      accepted(await claim(admin, moving));
      const change = { project_id: 'mine', user_id: 'v', consumer_type: 'unknown', consumer_generation: 2 };
      assert.equal((await member('PUT', `/consumers/${moving}`, change)).status, 403);
    },
    { placement: { uncountedTypes: ['MIGRATION'] } },
  );
});

test('a rule that compares the project lets a caller write what its own project has, at every version', async () => {
  const own = 'role:member and project_id:%(project_id)s';
  const rules = ['manage', 'list', 'update', 'delete'].map((verb) => `"placement:allocations:${verb}": ${own}`);
  await withPolicy(`${rules.join('\n')}\n"placement:resource_providers:list": ${own}\n`, async (service) => {
    const admin = requestsTo(service, newest);
    const host = randomUUID();
    await makeProvider(requestsOf(service, { 'x-auth-token': 'admin' }), host, { VCPU: { total: 20 } });
    const [a, b] = [callerIn(service, 'a', 'member'), callerIn(service, 'b', 'member')];
    // This request is about no project, so that the rule allows it to no caller, also to one that has a project.
    assert.equal((await a('GET', '/resource_providers')).status, 403);
    for (const version of ['1.8', '1.12', '1.28', '1.38', '2.7']) {
      const number = Number(version.split('.')[1]) + (version.startsWith('2') ? 100 : 0);
      const consumer = randomUUID();
      const bodyOf = (project_id: string, consumer_generation: number | null) => ({
        allocations:
          number < 12
            ? [{ resource_provider: { uuid: host }, resources: { VCPU: 1 } }]
            : { [host]: { resources: { VCPU: 1 } } },
        project_id,
        user_id: 'u',
        ...(number < 28 ? {} : { consumer_generation }),
        ...(number < 38 ? {} : { consumer_type: 'JOB' }),
      });
      const at = `placement ${version}`;
      const put = (send: Send, project: string, generation: number | null) =>
        send('PUT', `/allocations/${consumer}`, bodyOf(project, generation), at);
      assert.equal((await put(a, 'b', null)).status, 403, version);
      assert.equal((await put(a, 'a', null)).status, 204, version);
      assert.equal((await put(b, 'b', 1)).status, 403, version);
      assert.equal((await put(b, 'b', null)).status, 403, version);
      assert.equal((await put(a, 'b', 1)).status, 403, version);
      assert.equal((await put(a, 'a', 1)).status, 204, version);
      if (number >= 13) {
        const body = { [consumer]: bodyOf('b', 2), [randomUUID()]: bodyOf('b', null) };
        assert.equal((await b('POST', '/allocations', body, at)).status, 403, version);
      }
      assert.equal((await b('DELETE', `/allocations/${consumer}`, undefined, at)).status, 404, version);
      assert.equal((await a('DELETE', `/allocations/${consumer}`, undefined, at)).status, 204, version);
    }
    assert.equal((await admin('GET', `/allocations/${randomUUID()}`)).status, 403);
  });
});
