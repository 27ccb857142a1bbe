/** `placement usage report`, and the client's pages of records, on a service that keeps a history. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, test } from 'node:test';
import { connect, type Placement } from '../../src/client/index.ts';
import { until } from '../support/until.ts';
import { commandsOn, hostedPlacement } from './command.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer({}, { history: { enabled: true } });
});
after(() => server.close());

const { run, fails, isWrongUsage } = commandsOn(() => server);

test('the report of a month has a line for each team and class, as a table, as CSV and as JSON', async () => {
  const client = connect({ endpoint: server.url, auth: 'admin', version: '2.9' });
  const { uuid } = await client.providers.create({ name: 'gpu-1' });
  const inventories = { PGPU: { total: 10_000 }, VCPU: { total: 10_000 } };
  await client.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  await until('the history is on', async () => {
    const claim = { project_id: 'probe', user_id: 'u', consumer_generation: null, consumer_type: 'JOB' };
    await client.allocations.set(randomUUID(), { allocations: { [uuid]: { resources: { VCPU: 1 } } }, ...claim });
    return (await client.usageRecords.totals(['project_id'])).length > 0;
  });
  for (const project_id of ['speech', 'vision', 'vision']) {
    const claim = { project_id, user_id: `${project_id}-ci`, consumer_generation: null, consumer_type: 'JOB' };
    const allocations = { [uuid]: { resources: { PGPU: 2000, VCPU: 8000 / 4 } } };
    await client.allocations.set(randomUUID(), { allocations, ...claim, name: 'train-7' });
  }
  const [first] = await Array.fromAsync(client.usageRecords.list());
  const month = String(first?.from).slice(0, 7); // another one may have begun since
  const report = await run('usage', 'report', '--month', month, '--by', 'project');
  assert.match(report, /\| project +\| class +\| amount hours \|/);
  assert.match(report, /\| vision +\| PGPU +\| +[0-9.]+ \|/);
  const lines = (
    await run('usage', 'report', '--month', month, '--by', 'project,user,type,provider,day', '--format', 'csv')
  )
    .trim()
    .split('\n');
  assert.equal(lines[0], 'project,user,type,provider,day,class,amount hours');
  assert.match(
    `${lines.find((line) => line.startsWith('speech'))}`,
    new RegExp(`^speech,speech-ci,JOB,gpu-1,${month}-[0-9]{2},PGPU,[0-9.]+$`),
  );
  const json = JSON.parse(await run('usage', 'report', '--project', 'vision', '--class', 'PGPU', '--json'));
  assert.deepEqual(
    json.map(({ amount_hours: _, ...of }: Record<string, unknown>) => of),
    [{ project_id: 'vision', resource_class: 'PGPU' }],
  );
  assert.ok(json[0].amount_hours > 0);
  for (const words of [
    ['report', '--month', '2020-01'],
    ['records', '--until', '2020-01-01T00:00:00Z'],
  ]) {
    assert.match(
      await run('usage', ...words),
      /^Nothing is recorded that meets this\. .* \[history\] enabled = true\.\n$/,
    );
  }
  assert.match(await run('usage', 'report', '--provider', 'gpu-1', '--from', `${month}-01T00:00:00Z`), /speech/);

  const records = await Array.fromAsync(client.usageRecords.list({ project_id: 'vision', open: true }));
  assert.deepEqual(
    records.map(({ name, resource_class, amount, until: end }) => [name, resource_class, amount, end]).toSorted(),
    [
      ['train-7', 'PGPU', 2000, null],
      ['train-7', 'PGPU', 2000, null],
      ['train-7', 'VCPU', 2000, null],
      ['train-7', 'VCPU', 2000, null],
    ],
  );
});

test('times may be durations before now, and records are listed', async () => {
  const client = connect({ endpoint: server.url, auth: 'admin', version: '2.9' });
  const { uuid } = await client.providers.create({ name: 'ago' });
  const inventories = { VCPU: { total: 10 } };
  await client.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  const claim = { project_id: 'ago', user_id: 'u', consumer_generation: null, consumer_type: 'JOB', name: 'now' };
  const consumer = randomUUID();
  await client.allocations.set(consumer, { allocations: { [uuid]: { resources: { VCPU: 3 } } }, ...claim });
  assert.match(await run('usage', 'report', '--project', 'ago', '--from', '1h30m'), /VCPU/);
  assert.doesNotMatch(await run('usage', 'report', '--project', 'ago', '--from', '2h', '--until', '1h'), /VCPU/);
  assert.match(await run('usage', 'records', '--project', 'ago', '--from', '1h', '--format', 'csv'), /^consumer,name,/);
  const [record] = await Array.fromAsync(client.usageRecords.list({ consumer }));
  const day = String(record?.from).slice(0, 10); // another one may have begun since
  const open = await run('usage', 'records', '--project', 'ago', '--from', day, '--open', '--format', 'csv');
  assert.match(open, new RegExp(`\n${consumer},now,ago,u,JOB,ago,VCPU,3,${day}T\\S+Z,,\n$`));
  await client.allocations.delete(consumer);
  assert.equal(JSON.parse(await run('usage', 'records', '--project', 'ago', '--open', '--json')).length, 0);
  assert.match(await run('usage', 'records', '--provider', 'ago', '--class', 'VCPU'), /released/);
  const [total] = JSON.parse(await run('usage', 'report', '--project', 'ago', '--json'));
  const [, line] = (await run('usage', 'report', '--project', 'ago', '--format', 'csv')).split('\n');
  assert.equal(line, `ago,VCPU,${total.amount_hours}`);
  assert.ok(total.amount_hours > 0);
  for (const time of ['1', 'x', '1x', '2026', 'yesterday']) {
    await isWrongUsage(/2026-11-01T00:00:00Z|such as 45s/, ['usage', 'report', '--from', time]);
  }
});

test('a class that does not exist gives a warning if nothing is found', async () => {
  const env = { OS_ENDPOINT: server.url, OS_TOKEN: 'admin' };
  for (const command of ['report', 'records']) {
    const { code, stderr } = await hostedPlacement(['usage', command, '--class', 'PGPUS'], env);
    assert.deepEqual([code, stderr], [0, 'Warning: there is no resource class PGPUS now. Did you mean PGPU?\n']);
    assert.doesNotMatch(await run('usage', command, '--class', 'SRIOV_NET_VF'), /SRIOV/);
  }
  const client = connect({ endpoint: server.url, auth: 'admin', version: '2.9' });
  await client.resourceClasses.create('CUSTOM_GONE');
  await useAndDelete(client, 'gone', 'CUSTOM_GONE');
  await client.resourceClasses.delete('CUSTOM_GONE');
  assert.match(await run('usage', 'records', '--class', 'CUSTOM_GONE'), /released/);
});

test('what was used of a provider that was deleted is found by its UUID', async () => {
  const client = connect({ endpoint: server.url, auth: 'admin', version: '2.9' });
  const uuid = await useAndDelete(client, 'retired', 'VCPU');
  assert.match(await run('usage', 'records', '--provider', uuid.toUpperCase()), /retired.*released/);
  assert.match(await run('usage', 'report', '--provider', uuid, '--by', 'provider'), /retired/);
  await fails('wrongInput', /no provider "retired" now.*UUID/, ['usage', 'records', '--provider', 'retired']);
});

test('all pages of records are read', async () => {
  const client = connect({ endpoint: server.url, auth: 'admin', version: '2.9' });
  const { uuid } = await client.providers.create({ name: 'many' });
  const inventories = { VCPU: { total: 10_000 } };
  await client.inventories.set(uuid, { inventories, resource_provider_generation: 0 });
  const claim = { project_id: 'many', user_id: 'u', consumer_generation: null, consumer_type: 'JOB' };
  const allocations = { [uuid]: { resources: { VCPU: 1 } } };
  const names = Array.from({ length: 1100 }, () => randomUUID());
  for (let start = 0; start < names.length; start += 275) {
    const some = names.slice(start, start + 275);
    await client.allocations.setMany(Object.fromEntries(some.map((name) => [name, { allocations, ...claim }])));
  }
  for (const name of names.slice(0, 50)) await client.allocations.delete(name);
  const records = await Array.fromAsync(client.usageRecords.list({ resource_provider: uuid }));
  assert.deepEqual(records.map(({ consumer }) => consumer).toSorted(), names.toSorted());
  assert.equal(records.filter(({ ended }) => ended === 'released').length, 50);
});

test('a wrong month, key or version is refused in a sentence', async () => {
  await isWrongUsage(/Write a month as 2026-11/, ['usage', 'report', '--month', 'november']);
  await isWrongUsage(/Write a month as 2026-11/, ['usage', 'report', '--month', '2026-13']);
  await isWrongUsage(/different ones of project, user/, ['usage', 'report', '--by', 'week']);
  await isWrongUsage(/different ones of project, user/, ['usage', 'report', '--by', 'day,day']);
  await isWrongUsage(/cannot be used with/, [
    'usage',
    'report',
    '--month',
    '2026-11',
    '--from',
    '2026-11-01T00:00:00Z',
  ]);
  await fails('wrongInput', /has a day, a time of day or a zone that does not exist/, [
    'usage',
    'report',
    '--from',
    '2026-11-01T99:00:00Z',
  ]);
  await fails('failed', /2\.9/, ['usage', 'report', '--os-placement-api-version', '2.8']);
});

/** Creates a provider, claims and releases it for a project of the same name, and deletes the provider. @returns the UUID of the provider */
async function useAndDelete(client: Placement, name: string, className: string): Promise<string> {
  const { uuid } = await client.providers.create({ name });
  await client.inventories.set(uuid, { inventories: { [className]: { total: 1 } }, resource_provider_generation: 0 });
  const claim = { project_id: name, user_id: 'u', consumer_generation: null, consumer_type: 'JOB' };
  const consumer = randomUUID();
  await client.allocations.set(consumer, { allocations: { [uuid]: { resources: { [className]: 1 } } }, ...claim });
  await client.allocations.delete(consumer);
  await client.providers.delete(uuid);
  return uuid;
}
