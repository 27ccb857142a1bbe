/** Each exit code of the command, by command lines that end with it. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { exitCodes } from '../../src/cli/exit_codes.ts';
import { commandsOn, hostedPlacement } from './command.ts';
import { project } from './documentation.ts';
import { startKeystone } from './keystone_server.ts';
import { forward, type Handler, startFront, startServer, type TestServer } from './servers.ts';

let server: TestServer;
before(async () => {
  server = await startServer();
  await run('provider', 'create', 'host-1');
  await run('inventory', 'set', 'host-1', 'VCPU=4', 'MEMORY_MB=1024', 'MEMORY_MB:step_size=512');
});
after(() => server.close());

const { env, run, fails, isWrongUsage } = commandsOn(() => server);

const place = (...args: readonly string[]) => ['allocation', 'place', ...args, '--project', 'ci'];
const set = (amounts: string, ...args: readonly string[]) => [
  'allocation',
  'set',
  randomUUID(),
  '-a',
  `rp=host-1,${amounts}`,
  '--project',
  'ci',
  '--user',
  'ada',
  ...args,
];
/** A version of OpenStack Placement, whose refusals have no codes of their own. */
const old = ['--os-placement-api-version', '1.39'];

test('the help and docs/client.md have the table of exit codes', async () => {
  const help = await run('--help');
  const document = await readFile(path.join(project, 'docs', 'client.md'), 'utf8');
  for (const { code, meaning } of Object.values(exitCodes)) {
    assert.ok(help.includes(`\n${String(code).padStart(5)}  ${meaning}\n`), meaning);
    assert.ok(document.includes(`\n| ${code} | ${meaning} |\n`), meaning);
  }
  const codes = Object.values(exitCodes).map(({ code }) => code);
  assert.equal(new Set(codes).size, codes.length);
});

test('wrong usage is not a wrong input', async () => {
  // No such number is sent: it would be 1e+23.
  const tooMuch = '9'.repeat(23);
  for (const words of [
    ['candidate', 'list', `VCPU=${tooMuch}`],
    ['candidate', 'list', 'VCPU=1', '--limit', tooMuch],
    ['inventory', 'set', 'host-1', `VCPU=${tooMuch}`],
    ['limit', 'set', 'ci', `VCPU=${tooMuch}`],
  ]) {
    await isWrongUsage(/ to 2147483647/, words);
  }
  await isWrongUsage(/Usage: placement provider/, ['provider']);
  await isWrongUsage(/The URL of the placement service is missing/, ['provider', 'list'], { OS_ENDPOINT: '' });
  await fails('wrongInput', /There is no provider "nope"/, ['provider', 'show', 'nope']);
  await fails('wrongInput', /No such resource class CUSTOM_X/, ['candidate', 'list', 'CUSTOM_X=1']);
  await fails('wrongInput', /no limits of project/, ['limit', 'delete', 'nope']);
  for (const version of [[], old]) {
    await fails('wrongInput', /violate inventory constraints/, set('MEMORY_MB=513', ...version));
    await fails('wrongInput', /Inventory for 'DISK_GB' .* invalid/, set('DISK_GB=1', ...version));
  }
});

test('a query that no provider could ever satisfy is wrong input, named by its option', async () => {
  const list = (...args: readonly string[]) => ['candidate', 'list', 'VCPU=1', ...args];
  await run(...place('VCPU=1', '--consumer', 'here', '--expires-in', '10m'));
  await fails(
    'wrongInput',
    /: --with nope: this consumer has nothing, so that no host has it\.\n/,
    place('VCPU=1', '--with', 'nope'),
  );
  await fails(
    'wrongInput',
    /: --with ci\/nope, --with ci\/no: these consumers have nothing/,
    list('--with', 'ci/nope', '--with', 'ci/no'),
  );
  await run(...list('--with', 'ci/nope', '--with', 'ci/here'));
  await fails('wrongInput', /: --root-required in:A,B: for the root, /, list('--root-required', 'in:A,B'));
  for (const [args, expected] of [
    [
      ['-g', '1'],
      /: --group 1: no resource is asked of this group\. Name one behind it, such as --group 1 -r VCPU=1\.\n/,
    ],
    [['-g', '_A', '--required', 'HW_CPU_X86_AVX'], /: --group _A: .* or name the group in --same-subtree\.\n/],
    [['-g', '_A', '--same-subtree', '_A'], /: --group _A: no resource/],
  ] as const) {
    await fails('wrongInput', expected, list(...args));
  }
  await run(...list('-g', '_A', '--required', 'HW_CPU_X86_AVX', '-g', '_B', '-r', 'VCPU=1', '--same-subtree', '_A,_B'));
  await run('allocation', 'delete', 'ci/here');
});

test('a lack of room is neither a conflict nor a limit', async () => {
  await fails('full', /no tree meets resources=VCPU:5/, place('VCPU=5'));
  for (const version of [[], old]) await fails('full', /exceed the capacity/, set('VCPU=5', ...version));
  await run('limit', 'set', 'ci', 'VCPU=1');
  await fails(
    'limited',
    /is limited to 1 of VCPU[^\n]*\n"placement limit show ci"[^\n]*"placement holdings --project ci"/,
    place('VCPU=2'),
  );
  await fails('limited', /VCPU/, set('VCPU=2'));
  await run('limit', 'delete', 'ci');
  await run(...place('VCPU=2'));
});

test('an existing, used or changed resource is a conflict', async () => {
  await fails('conflict', /host-1/, ['provider', 'create', 'host-1']);
  await run(...set('VCPU=1'));
  await fails('conflict', /in use/, ['inventory', 'delete', 'host-1', 'VCPU']);
  await fails('conflict', /If-Match/, ['inventory', 'set', 'host-1', 'VCPU=5', '--if-match', '"other"']);
});

test('a service that does not answer, one that has an error, and one that refuses the caller are distinguished', async () => {
  await fails('noAnswer', /No answer/, ['provider', 'list'], { OS_ENDPOINT: 'http://127.0.0.1:9' });
  for (const [status, ending] of [
    [503, 'noAnswer'],
    [500, 'noAnswer'],
    [429, 'noAnswer'],
    [401, 'forbidden'],
    [413, 'wrongInput'],
    [405, 'failed'],
  ] as const) {
    const front = await startFront((_, response) => response.writeHead(status).end());
    try {
      await fails(ending, new RegExp(`\\[GET .*: ${status} `), ['provider', 'list'], { OS_ENDPOINT: front.url });
    } finally {
      await front.close();
    }
  }
  await fails('forbidden', /403 Forbidden/, ['provider', 'list'], { OS_TOKEN: 'joe' });
  // The hint names only an option that the command has, and that was not used.
  const hint = /name it by --project\.\n$/;
  await fails('forbidden', hint, ['holdings'], { OS_TOKEN: 'joe' });
  for (const words of [
    ['provider', 'list'],
    ['holdings', '--project', 'ci'],
  ]) {
    await fails('forbidden', /needs? the role admin or service\. .*noauth2.*OS_TOKEN=admin\.\n$/, words, {
      OS_TOKEN: 'joe',
    });
  }
  // Where the service says how a reader asks for its own, the command says it once, with its own option.
  const asReader = await startFront((incoming, response) => {
    incoming.headers['x-roles'] = 'reader';
    forward(server.url, incoming, response);
  });
  try {
    const once = /^(?!.*(?:name it by|project_id)).*what its own project has: --project joe, and no provider\./s;
    for (const words of [['holdings'], ['consumer', 'list'], ['waiting', 'list'], ['usage', 'records']]) {
      await fails('forbidden', once, words, { OS_TOKEN: 'joe', OS_ENDPOINT: asReader.url });
    }
  } finally {
    await asReader.close();
  }
  await fails('failed', /needs microversion 2\.9/, ['holdings', '--os-placement-api-version', '2.8']);
});

test('something else that answers is no service, and is named', async () => {
  const html = { 'content-type': 'text/html' };
  const others: readonly (readonly [says: RegExp, answer: Handler])[] = [
    [/answered, but no JSON object/, (_, response) => response.writeHead(200, html).end('<html>Welcome!</html>')],
    [/answered, but no JSON object/, (_, response) => response.end('[]')],
    [
      /has no (resource_providers|versions): it is not that of a placement service/,
      (_, response) => response.end('{}'),
    ],
    [/has no (resource_providers|versions): /, (_, response) => response.end('{"versions": {"values": []}}')],
    [/has no (resource_providers|versions): /, (_, response) => response.end()],
    [
      /404 Not Found\]\nThere is no placement service/,
      (_, response) => response.writeHead(404, html).end('<h1>404</h1>'),
    ],
    [
      /The server redirects to https:\/\/login\.example\/, which is not followed.*302 Found\]/,
      (_, response) => response.writeHead(302, { location: 'https://login.example/' }).end(),
    ],
  ];
  for (const [says, answer] of others) {
    const front = await startFront(answer);
    try {
      for (const words of ['provider list', 'provider show host-1', 'version']) {
        await fails('noAnswer', says, words.split(' '), { OS_ENDPOINT: front.url });
      }
    } finally {
      await front.close();
    }
  }
  const page = await startFront((_, response) => response.writeHead(200, html).end('<html>Welcome!</html>'));
  try {
    const says =
      /needs microversion 2\.2, .*knows no microversions\. If it is no placement service, check the endpoint/;
    await fails('failed', says, ['export'], { OS_ENDPOINT: page.url });
  } finally {
    await page.close();
  }
});

test('a Keystone that refuses the password, one that does not answer, and another server are distinguished', async () => {
  const keystone = await startKeystone({ placementUrl: server.url });
  const user = {
    OS_USERNAME: 'nova',
    OS_PASSWORD: 'secret',
    OS_PROJECT_NAME: 'service',
    OS_REGION_NAME: 'RegionOne',
    OS_TOKEN: '',
    OS_ENDPOINT: '',
  };
  const ended = async (more: Readonly<Record<string, string>>) =>
    (await hostedPlacement(['provider', 'list'], env({ ...user, OS_AUTH_URL: keystone.url, ...more }))).code;
  try {
    assert.equal(await ended({}), 0);
    assert.equal(await ended({ OS_PASSWORD: 'wrong' }), exitCodes.forbidden.code);
    assert.equal(await ended({ OS_AUTH_URL: 'http://127.0.0.1:9' }), exitCodes.noAnswer.code);
    assert.equal(await ended({ OS_AUTH_URL: `${keystone.url}/other` }), exitCodes.wrongUsage.code);
  } finally {
    await keystone.close();
  }
});
