import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { connect, VersionError } from '../../src/client/index.ts';
import { inFolder } from '../support/in_folder.ts';
import { commandsOn } from './command.ts';
import { compileExamples, readExamples, readSession, runExample, writeExamples } from './documentation.ts';
import { startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
});
after(() => server.close());

const commands = commandsOn(() => server);
const run = (line: string) => commands.run(...line.split(' '));

const [vm, job] = ['00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];

test('the commands and the example of docs/terms.md print the documented output', async () => {
  const commands = await readSession('terms.md');
  const [example] = await readExamples('terms.md');
  assert.equal(commands.length, 8);
  const printed: string[] = [];
  for (const { line, output } of commands) {
    printed.push(await run(line));
    if (output !== '') assert.equal(printed.at(-1), output, line);
  }
  const [placed, listed, renewed] = printed.slice(2);
  assert.match(`${placed}`, /^Consumer \S+1 has this until \d{4}-\S+Z\.$/m);
  assert.match(`${listed}`, /\| expires +\|\n.*\n\| \S+1 \|.*Z \|/);
  assert.match(`${renewed}`, /^Consumer \S+1 lasts until \d{4}-\S+Z\.$/m);
  assert.doesNotMatch(await run('consumer list --expiring 1800 --project ci'), /\S+2 \|/, 'it ends later');
  assert.match(await run(`consumer list --expiring 3700`), new RegExp(job));
  assert.match(await run(`allocation show ${job}`), /\| expires +\| \d{4}-\S+Z/);
  assert.match(await run(`consumer show ${job}`), /\| expires +\| \d{4}-\S+Z/);
  assert.match(await run(`consumer show ${vm}`), /\| expires +\| +\|/);
  await inFolder(async (folder) => {
    assert.equal(example?.name, 'start');
    await writeExamples(folder, [example]);
    await compileExamples(folder);
    assert.equal(await runExample(folder, 'start', { OS_ENDPOINT: server.url }), example.output);
  });
});

test('commands refuse values that are no term', async () => {
  for (const seconds of ['0', '0m', '-1', '1.5', 'soon', '', '30m1h', '1h1h', 'h', '4000d']) {
    await commands.isWrongUsage(/a time from 1 s/, ['consumer', 'term', vm, `--expires-in=${seconds}`]);
  }
  await commands.isWrongUsage(/Nothing is to be changed/, ['consumer', 'term', vm]);
  await commands.isWrongUsage(/cannot be used with/, ['consumer', 'term', vm, '--expires-in', '5', '--lasting']);
  await commands.fails('wrongInput', /max_term/, ['consumer', 'term', vm, '--expires-in', '400d']);
});

test('a claim with a term is not sent to a server without terms', async () => {
  const allocations = { '00000000-0000-4000-8000-00000000000a': { resources: { VCPU: 1 } } };
  const claim = {
    allocations,
    project_id: 'p',
    user_id: 'u',
    consumer_generation: null,
    consumer_type: 'JOB',
    expires_in: 5,
  };
  const { allocations: _, ...owner } = claim;
  const placing = { ...owner, candidates: 'resources=VCPU:1' };
  const old = await startServer({ max: '2.5' });
  try {
    const client = connect({ endpoint: old.url, auth: 'admin' });
    await assert.rejects(client.allocations.set(job, claim), VersionError);
    await assert.rejects(client.allocations.setMany({ [job]: claim }), VersionError);
    await assert.rejects(client.allocations.place(job, placing), VersionError);
    await assert.rejects(client.allocations.placeMany({ [job]: placing }), VersionError);
    await assert.rejects(client.consumers.page({ expiring_before: new Date() }), VersionError);
    assert.deepEqual((await client.allocations.show(job)).allocations, {});
  } finally {
    await old.close();
  }
});
