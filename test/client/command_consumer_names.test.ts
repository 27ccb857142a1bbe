import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { afterEach, beforeEach, test } from 'node:test';
import { connect, consumerNamespace, consumerUuid, isNoCandidates } from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { commandsOn } from './command.ts';
import { forward, startFront, startServer, type TestServer } from './servers.ts';

let server: TestServer;
beforeEach(async () => {
  server = await startServer();
});
afterEach(() => server.close());

const { run, fails, isWrongUsage } = commandsOn(() => server);

/** A pool of GPUs, and jobs of a project with one GPU each. */
async function fill(jobs: Readonly<Record<string, readonly string[]>>): Promise<ReturnType<typeof connect>> {
  const client = connect({ endpoint: server.url, auth: 'admin', oldest: '2.2' });
  const { uuid } = await client.providers.create({ name: 'gpu-host' });
  const inventories = { PGPU: { total: 100 } };
  await client.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  for (const [project, names] of Object.entries(jobs)) {
    for (const name of names) {
      await client.allocations.set(consumerUuid(project, name), {
        allocations: { [uuid]: { resources: { PGPU: 1 } } },
        project_id: project,
        user_id: 'ada',
        consumer_type: name.startsWith('job') ? 'CI_JOB' : 'INSTANCE',
        consumer_generation: null,
      });
    }
  }
  return client;
}

test('the UUID of a name is that of uuid5(uuid5(namespace, project), name)', () => {
  // As printed by Python: uuid5(uuid5(UUID(consumerNamespace), 'ci'), 'job-1') and so on.
  assert.equal(consumerNamespace, '5a0f6f5c-6d0c-4a54-8c55-0e8a2b9d7c41');
  const python: readonly (readonly [project: string, name: string, uuid: string])[] = [
    ['ci', 'job-1', 'f64facc0-a854-5499-87e9-a3f5b0bf1211'],
    ['ci', 'job-2', '6fcb5b23-cf18-50f4-804e-2a1cccc39828'],
    ['web', 'job-1', '40e7ab23-da06-5770-8f62-508d369df62f'],
    ['projekt-ä', 'ビルド 7', '49e87229-e4e0-569c-8f21-c16d28318437'],
    ['a', 'b/c', '53c73f30-9f6b-5771-83b2-4d29c304fd7c'],
  ];
  for (const [project, name, uuid] of python) assert.equal(consumerUuid(project, name), uuid);
});

test('the error about a consumer that does not exist has the name that was written', async () => {
  const uuid = consumerUuid('robots', 'lokc');
  const named = new RegExp(`There is no consumer robots/lokc\\. Its UUID would be ${uuid}\\.`);
  for (const command of [['term', '--lasting'], ['show'], ['set', '--type', 'JOB']]) {
    await fails('wrongInput', named, ['consumer', command[0] ?? '', 'robots/lokc', ...command.slice(1)]);
  }
  const waits = new RegExp(`No claim of consumer ${uuid} \\(robots/lokc\\) waits`);
  await fails('wrongInput', waits, ['waiting', 'delete', 'robots/lokc']);
});

test('summaries are sorted by the names of their providers', async () => {
  for (const name of ['host-10', 'host-2', 'host-1', 'a']) await run('provider', 'create', name);
  const lines = (await run('provider', 'summary', '--format', 'csv')).trim().split('\n');
  assert.deepEqual(
    lines.slice(1).map((line) => line.split(',')[0]),
    ['a', 'host-1', 'host-2', 'host-10'],
  );
});

test('every command finds the same consumer by a name', async () => {
  const client = await fill({});
  const job = consumerUuid('ci', 'job-1');
  const claim = ['-a', 'rp=gpu-host,PGPU=1', '--user', 'ada', '--type', 'CI_JOB'];
  await run('allocation', 'set', 'job-1', ...claim, '--project', 'ci');
  assert.equal((await client.consumers.show(job)).project_id, 'ci');
  await run('allocation', 'set', 'ci/job-2', ...claim);
  assert.equal((await client.consumers.show(consumerUuid('ci', 'job-2'))).project_id, 'ci');
  assert.ok((await run('allocation', 'show', 'ci/job-1')).includes(job));
  assert.ok((await run('consumer', 'show', 'ci/job-1')).includes(job));
  const placed = ['allocation', 'place', 'PGPU=1', '--consumer', 'job-3', '--project', 'ci', '--with', 'job-1'];
  assert.ok((await run(...placed)).includes(consumerUuid('ci', 'job-3')));
  assert.match(await run('candidate', 'list', 'PGPU=1', '--with', 'ci/job-3'), /gpu-host/);
  assert.match(await run('candidate', 'list', 'PGPU=1', '--apart-from', 'ci/job-3'), /It fits nowhere/);
  await run('consumer', 'set', 'ci/job-1', '--project', 'training');
  assert.equal((await client.consumers.show(job)).project_id, 'training', 'the name stays that of project ci');
  assert.match(await run('allocation', 'delete', 'ci/job-1'), /has no allocations any more/);
});

test('a claim by a name sets the name of the consumer, which all commands show', async () => {
  const client = await fill({});
  const [job, other] = [consumerUuid('ci', 'job-1'), consumerUuid('ci', 'job, "2"')];
  await run('allocation', 'set', 'job-1', '-a', 'rp=gpu-host,PGPU=1', '--project', 'ci', '--user', 'ada');
  const claim = ['--consumer', 'job, "2"', '--project', 'ci', '--expires-in', '600'];
  const placed = await run('allocation', 'place', 'PGPU=2', ...claim);
  assert.ok(placed.startsWith(`Consumer ${other} (job, "2") has this until `), placed);
  assert.equal((await client.consumers.show(job)).name, 'job-1');
  for (const args of [
    ['allocation', 'show', job],
    ['allocation', 'list', 'gpu-host'],
    ['consumer', 'show', job],
    ['consumer', 'list', '--name', 'job-1'],
    ['consumer', 'list', '--name-contains', 'OB-1'],
    ['allocation', 'delete', '--project', 'ci', '--dry-run'],
    ['holdings', '--class', 'PGPU', '--project', 'ci', '--in-tree', 'gpu-host'],
  ]) {
    assert.match(await run(...args), /\| job-1 +\|/, args.join(' '));
  }
  assert.doesNotMatch(await run('consumer', 'list', '--name', 'job-2'), /job-1/);
  assert.doesNotMatch(await run('consumer', 'list', '--name-contains', 'b-2'), /job-1/);
  const filter = ['--provider', 'gpu-host', '--user', 'ci', '--type', 'INSTANCE'];
  const lines = (await run('holdings', ...filter, '--format', 'csv')).split('\n');
  assert.equal(lines[0], 'consumer,name,project,user,type,provider,root,class,amount,since,expires');
  assert.ok(lines[1]?.startsWith(`${other},"job, ""2""",ci,ci,INSTANCE,gpu-host,gpu-host,PGPU,2,20`), lines[1]);
  assert.deepEqual(lines.slice(2), ['']);
  const [shown] = JSON.parse(await run('holdings', '--user', 'ada', '--json'));
  assert.deepEqual([shown.name, shown.resources, shown.expires_at], ['job-1', { PGPU: 1 }, null]);
  assert.match(await run('consumer', 'set', 'ci/job-1', '--name', 'train 7'), /train 7/);
  assert.equal((await client.consumers.show(job)).name, 'train 7');
  await run('consumer', 'set', 'ci/job-1', '--name', '');
  assert.equal((await client.consumers.show(job)).name, null);
  const older = ['--os-placement-api-version', '2.8'];
  await fails('failed', /2\.9/, ['holdings', ...older]);
  await run('allocation', 'set', 'ci/job-3', '-a', 'rp=gpu-host,PGPU=1', '--user', 'ada', ...older);
});

test('a name also finds a consumer whose UUID was chosen, and is refused where several have it', async () => {
  const client = connect({ endpoint: server.url, auth: 'admin', oldest: '2.9' });
  await fill({});
  const [chosen, second] = ['00000000-0000-4000-8000-0000000000c1', '00000000-0000-4000-8000-0000000000c2'];
  const claim = (uuid: string, project: string) =>
    client.allocations.place(uuid, {
      ...{ candidates: { resources: { PGPU: 1 } }, project_id: project, user_id: 'ada', consumer_type: 'JOB' },
      ...{ consumer_generation: null, name: 'train-7' },
    });
  await claim(chosen, 'vision');
  await claim(second, 'speech');
  for (const group of ['allocation', 'consumer']) assert.match(await run(group, 'show', 'vision/train-7'), /0c1 /);
  assert.match(await run('consumer', 'set', 'vision/train-7', '--user', 'bob'), /0c1 .*\| bob /s);
  assert.match(await run('consumer', 'term', 'vision/train-7', '--lasting'), /0c1 is lasting/);
  const two = ['-a', 'rp=gpu-host,PGPU=2'];
  assert.match(await run('allocation', 'set', 'vision/train-7', ...two), /0c1 .*PGPU=2/s);
  assert.match(await run('allocation', 'set', 'train-7', '--project', 'robots', ...two), /train-7/, 'a new consumer');
  assert.equal((await client.consumers.show(consumerUuid('robots', 'train-7'))).name, 'train-7');

  await client.consumers.set(second, { ...(await client.consumers.show(second)), project_id: 'vision' });
  const several = new RegExp(`Several consumers are called vision/train-7: ${chosen}, ${second}\\. Give the UUID\\.`);
  for (const args of [
    ['allocation', 'show', 'vision/train-7'],
    ['allocation', 'delete', 'vision/train-7'],
    ['consumer', 'term', 'vision/train-7', '--lasting'],
    ['allocation', 'set', 'vision/train-7', ...two],
  ]) {
    await fails('wrongInput', several, args);
  }
  await run('allocation', 'delete', second);
  assert.match(await run('allocation', 'delete', 'vision/train-7'), /0c1 has no allocations any more/);
  const derived = consumerUuid('vision', 'train-7');
  await fails('wrongInput', new RegExp(`Consumer ${derived} has no allocations`), [
    'allocation',
    'delete',
    'vision/train-7',
  ]);

  // Options that name a consumer find it as well.
  await claim(chosen, 'vision');
  const place = ['allocation', 'place', 'PGPU=1', '--project', 'vision'];
  assert.match(await run(...place, '--with', 'train-7', '--dry-run'), /gpu-host/);
  await fails('full', /apart_from=0{8}-.*0c1/, [...place, '--apart-from', 'train-7', '--dry-run']);
  assert.match(await run(...place, '--consumer', 'train-7', '--move'), /0c1 \(train-7\) has this now, in the place/);
  await run('allocation', 'delete', chosen);

  // So is one that waits: it is no consumer yet.
  const waiting = client.allocations.place(
    chosen,
    {
      ...{ candidates: { resources: { PGPU: 101 } }, project_id: 'vision', user_id: 'ada', consumer_type: 'JOB' },
      ...{ consumer_generation: null, name: 'train-8' },
    },
    { waitMs: 60_000 },
  );
  const ended = assert.rejects(waiting, isNoCandidates);
  await until('it waits', async () => (await client.waiting.page()).length > 0);
  assert.match(await run('waiting', 'delete', 'vision/train-8'), /vision\/train-8\) waits no more/);
  await ended;

  // The one whose UUID is made of the name comes first, also where it has another project by now.
  await claim(derived, 'web');
  await claim(chosen, 'vision');
  assert.match(await run('allocation', 'show', 'vision/train-7'), new RegExp(derived));
});

test('a project may have a slash, as that of a repository, and so may a name', async () => {
  await fill({ 'acme/vision': ['job-1'], acme: ['vision/job-2'] });
  assert.match(await run('consumer', 'show', 'acme/vision/job-1'), /acme\/vision/);
  const ofAcme = await run('consumer', 'show', 'acme/vision/job-2');
  assert.match(ofAcme, /acme/);
  assert.doesNotMatch(ofAcme, /acme\/vision *\|/);
  await run('consumer', 'term', 'acme/vision/job-1', '--expires-in', '1h');
  const set = (...more: string[]) => ['allocation', 'set', 'acme/vision/job-3', '-a', 'rp=gpu-host,PGPU=1', ...more];
  await isWrongUsage(/has several slashes, so its project is acme or acme\/vision\. Say which one by --project/, set());
  await run(...set('--project', 'acme/vision'));
  assert.match(await run('consumer', 'list', '--project', 'acme/vision', '--format', 'csv'), /,job-3,acme\/vision,/);
  await run('allocation', 'delete', 'acme/vision/job-1');
  await fails('wrongInput', /There is no consumer acme\/vision\/job-1\./, ['consumer', 'show', 'acme/vision/job-1']);
});

test('a member of a project with a slash ends the wait of its claim, and may not list those of another project', async () => {
  const client = await fill({});
  const claim = {
    candidates: { resources: { PGPU: 101 } },
    user_id: 'ada',
    consumer_type: 'JOB',
    consumer_generation: null,
  };
  const chosen = randomUUID();
  const owned = { ...claim, project_id: 'acme/vision', name: 'job-1' };
  const ended = assert.rejects(client.allocations.place(chosen, owned, { waitMs: 60_000 }), isNoCandidates);
  await until('it waits', async () => (await client.waiting.page()).length > 0);
  const detail = 'Policy does not allow placement:waiting:list to be performed.';
  const refusal = JSON.stringify({ errors: [{ status: 403, title: 'Forbidden', detail }] });
  const ofAnother = /^\/waiting\?project_id=acme(&|$)/;
  const front = await startFront((incoming, response) => {
    if (ofAnother.test(incoming.url ?? ''))
      response.writeHead(403, { 'content-type': 'application/json' }).end(refusal);
    else forward(server.url, incoming, response);
  });
  try {
    const said = await commandsOn(() => front).run('waiting', 'delete', 'acme/vision/job-1');
    assert.match(said, new RegExp(`${chosen} .* waits no more`));
    assert.ok(front.seen.some(({ url }) => ofAnother.test(url)));
    await ended;
  } finally {
    await front.close();
  }
});

test('a member sees what its consumer has, with the name of the host, though it may not see providers', async () => {
  await fill({ vision: ['job-1'] });
  const refusal = JSON.stringify({
    errors: [{ status: 403, title: 'Forbidden', detail: 'Policy does not allow it.' }],
  });
  const front = await startFront((incoming, response) => {
    if (incoming.url?.startsWith('/resource_providers'))
      response.writeHead(403, { 'content-type': 'application/json' }).end(refusal);
    else forward(server.url, incoming, response);
  });
  try {
    const ofMember = commandsOn(() => front);
    assert.match(await ofMember.run('allocation', 'show', 'vision/job-1'), /\| gpu-host \|/);
    const shown: unknown = JSON.parse(await ofMember.run('allocation', 'show', 'vision/job-1', '--json'));
    assert.match(JSON.stringify(shown), /"name":"gpu-host"/);
  } finally {
    await front.close();
  }
});

test('a consumer that is neither a UUID nor a name with its project is refused', async () => {
  const claim = ['-a', 'rp=gpu-host,PGPU=1', '--user', 'ada'];
  for (const [verb, ...more] of [['show'], ['delete'], ['set', ...claim]] as const) {
    const args = ['allocation', verb, 'job-1', ...more];
    await isWrongUsage(/Consumer "job-1" is no UUID\. Write a name together with its project, as PROJECT\/NAME/, args);
  }
  await isWrongUsage(/"\/job" is no UUID/, ['allocation', 'show', '/job']);
  const typo = 'b1d0c1a4-52a1-4a5e-8f0c-00000000000';
  await isWrongUsage(/is no UUID: a letter is missing/, ['allocation', 'set', typo, ...claim, '--project', 'ci']);
  await isWrongUsage(/"build\/7" is a name in project build, and --project is ci\..* write ci\/build\/7/, [
    'allocation',
    'set',
    'build/7',
    ...claim,
    '--project',
    'ci',
  ]);
});

test('allocation delete --project releases all consumers of a project, or those of a type, and counts them', async () => {
  const jobs = Array.from({ length: 46 }, (_, number) => `job-${number}`);
  const client = await fill({ ci: [...jobs, 'vm'], other: ['job-0'] });
  const dry = await run('allocation', 'delete', '--project', 'ci', '--type', 'CI_JOB', '--dry-run');
  assert.match(dry, /46 consumers would release all allocations\. Nothing was deleted\.\n$/);
  assert.equal((await Array.fromAsync(client.consumers.list({ project_id: 'ci' }))).length, 47);
  assert.equal(
    await run('allocation', 'delete', '--project', 'ci', '--type', 'CI_JOB'),
    '46 consumers released all allocations.\n',
  );
  const left = await Array.fromAsync(client.consumers.list());
  assert.deepEqual(
    left.map(({ uuid }) => uuid).toSorted(),
    [consumerUuid('ci', 'vm'), consumerUuid('other', 'job-0')].toSorted(),
  );
  const { consumers } = JSON.parse(await run('allocation', 'delete', '--project', 'ci', '--json'));
  assert.deepEqual(consumers, [consumerUuid('ci', 'vm')]);
  assert.equal(await run('allocation', 'delete', '--project', 'ci'), '0 consumers released all allocations.\n');
});

test('allocation delete takes a consumer or a project', async () => {
  const jobs = await fill({ ci: ['job-1'] });
  await isWrongUsage(/Give a consumer, or --project for all of a project/, ['allocation', 'delete']);
  await isWrongUsage(/not both\. For one consumer leave out --project, and write ci\/job-1\.$/m, [
    'allocation',
    'delete',
    'job-1',
    '--project',
    'ci',
  ]);
  const [uuid] = (await Array.fromAsync(jobs.consumers.list())).map((job) => job.uuid);
  for (const written of ['ci/job-1', String(uuid)]) {
    const alone = new RegExp(`leave out --project, and write ${written}\\.$`, 'm');
    await isWrongUsage(alone, ['allocation', 'delete', written, '--project', 'ci']);
  }
  await isWrongUsage(/--user, --type and --dry-run need --project/, ['allocation', 'delete', 'ci/job-1', '--dry-run']);
  await isWrongUsage(/--if-match is for one consumer/, [
    'allocation',
    'delete',
    '--project',
    'ci',
    '--if-match',
    '"x"',
  ]);
  const older = ['--os-placement-api-version', '2.1'];
  await fails('failed', /needs microversion 2\.2/, ['allocation', 'delete', '--project', 'ci', ...older]);
  assert.equal((await Array.fromAsync(jobs.consumers.list())).length, 1, 'nothing was deleted');
});

test('a type that no consumer can have is refused in a sentence', async () => {
  const claim = ['allocation', 'set', 'job-1', '-a', 'rp=gpu-host,PGPU=1', '--project', 'ci', '--user', 'ada'];
  const sentence = /'ci-job' is invalid\. The type of a consumer has capital letters, digits and _, such as CI_JOB\./;
  for (const args of [claim, ['allocation', 'place', 'PGPU=1', '--project', 'ci'], ['consumer', 'list']]) {
    await isWrongUsage(sentence, [...args, '--type', 'ci-job']);
  }
  await isWrongUsage(/given twice/, [...claim, '--type', 'A', '--type', 'B']);
});
